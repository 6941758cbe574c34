// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/watch/stall/stack_text.h"

namespace hlaunch {

// The innermost frame of the user's own code, else the innermost frame outside of libraries, else
// the innermost frame: "__getitem__ (loader.py:88)". Empty if there are no frames. Pure.
std::string UserPlace(const StackSummary& stack);

}  // namespace hlaunch
