// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>

#include "proto/base/clock.h"

namespace hlaunch {

// How long calls may still go on when a rendezvous server of this process shuts down.
inline constexpr Duration kShutdownGrace = std::chrono::seconds(1);

}  // namespace hlaunch
