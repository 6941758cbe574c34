// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"
#include "asio/steady_timer.hpp"
#include "launcher/words/environment.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What a service manager's variables ask of this process. A value.
struct NotifyPlace {
  std::string socket;      // A path, or with '@' an abstract name; empty: nobody asks.
  Duration watchdog = {};  // It wants a sign of life at least so often; 0: it does not.
};

// From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which counts where it is `self` or its
// `keeper`. Pure.
NotifyPlace FindNotifyPlace(const Environment& environment, pid_t self, pid_t keeper);

// systemd, or whoever speaks sd_notify's protocol: is told that this process is ready, where it
// stands, that it lives as long as the loop turns, and that it stops. Tells nobody where no one
// asks, and what cannot be told is lost.
//
// Belongs to the loop's thread; `loop` outlives it.
class ServiceManager {
 public:
  ServiceManager(asio::io_context& loop, NotifyPlace place);

  // Ready, with `status` for people; from now on signs of life follow, twice in each period.
  void Ready(absl::string_view status);
  void Status(absl::string_view status) const;
  // A stop may last `at_most` from now, whatever the unit's own limit is.
  void Stopping(absl::string_view status, Duration at_most) const;
  // So may a stop that is under way or may begin, by another's decision.
  void MayTake(Duration at_most) const;

 private:
  void SayAlive();

  const NotifyPlace place_;
  asio::steady_timer alive_;
};

}  // namespace hlaunch
