// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What a status page asks of a browser where there is a token: 32 hexadecimal digits that are made
// from the token and do not tell it. Whoever has them can read pages and nothing else. Empty if
// OpenSSL refuses.
std::string PagePassword(absl::string_view token);

// Whether the two are the same; of passwords of one length it tells nothing by the time it takes.
bool SamePassword(absl::string_view a, absl::string_view b);

}  // namespace hlaunch
