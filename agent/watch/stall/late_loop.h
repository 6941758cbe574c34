// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "proto/base/clock.h"

namespace hlaunch {

// A loop that is this late was stopped or held up. It has not read what came meanwhile, so silence
// says nothing about the workers.
inline constexpr Duration kLateLoop = std::chrono::seconds(1);

}  // namespace hlaunch
