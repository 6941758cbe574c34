// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns the password that a status page asks for if there is a token: 32 hexadecimal digits that
// are made from the token but do not reveal it. Its holder can read pages and nothing else. Empty
// if OpenSSL refuses.
std::string PagePassword(absl::string_view token);

// Returns whether the two are equal. The time that it takes for equal lengths reveals nothing.
bool SamePassword(absl::string_view a, absl::string_view b);

}  // namespace hlaunch
