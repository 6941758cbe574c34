// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"
#include "asio/steady_timer.hpp"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What the variables of a service manager ask this process to do. A value.
struct NotifyPlace {
  std::string socket;      // A path, or an abstract name after '@'. Empty: no manager asks.
  Duration watchdog = {};  // The longest time between two signs of life. 0: none are wanted.
};

// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. The watchdog counts only if WATCHDOG_PID is
// empty, `self` or its `keeper`. Pure.
NotifyPlace FindNotifyPlace(const Environment& environment, pid_t self, pid_t keeper);

// Notifies systemd, or another manager with the protocol of sd_notify, that this process is ready,
// what it does, that it lives while the loop runs, and that it stops. Does nothing if no manager
// asks. A notification that cannot be sent is lost.
//
// Belongs to the loop's thread; `loop` outlives it.
class ServiceManager {
 public:
  ServiceManager(asio::io_context& loop, NotifyPlace place);

  // Reports that the process is ready; `status` is for people. From now on sends two signs of life
  // in each period of the watchdog.
  void Ready(absl::string_view status);
  void Status(absl::string_view status) const;
  // Reports a stop, which may last `at_most` from now, whatever the unit's own limit is.
  void Stopping(absl::string_view status, Duration at_most) const;
  // Asks for the same time without reporting a stop: another node may decide to stop the job.
  void MayTake(Duration at_most) const;

 private:
  void SayAlive();

  const NotifyPlace place_;
  asio::steady_timer alive_;
};

}  // namespace hlaunch
