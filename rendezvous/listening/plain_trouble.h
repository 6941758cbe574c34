// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Turns gRPC's text about a failed connection into words for people: the kernel's words if the text
// holds them, else one of a few sentences. Returns unknown text as it is. Pure.
std::string PlainTrouble(absl::string_view text);

}  // namespace hlaunch
