// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What gRPC says of a connection that failed, in words for people: what the kernel says where that
// is in it, else one of a few sentences; what is not known stays. Pure.
std::string PlainTrouble(absl::string_view text);

}  // namespace hlaunch
