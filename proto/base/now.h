// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "proto/base/clock.h"

namespace hlaunch {

// The time of the host's monotonic clock, for code that is never given another clock.
inline Instant Now() { return MonotonicClock().Now(); }

}  // namespace hlaunch
