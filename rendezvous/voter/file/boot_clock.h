// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>

#include "proto/base/clock.h"

namespace hlaunch {

// A clock in milliseconds that runs on while the host is suspended, as the clocks of all other
// hosts do; a lease by the monotonic clock would not end meanwhile. Its instants mean nothing to
// another clock.
class BootClock final : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::milliseconds(BootMillis())); }
};

}  // namespace hlaunch
