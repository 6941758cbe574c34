// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/stall/stack_text.h"

namespace hlaunch {

// The innermost frame that is the user's own and no library's, else the innermost of all:
// "__getitem__ (loader.py:88)". Empty: there are no frames. Pure.
std::string UserPlace(const StackSummary& stack);

}  // namespace hlaunch
