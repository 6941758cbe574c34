// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"
#include "rendezvous/failover/kubernetes/api_objects.h"

namespace hlaunch {

// What a standby process has seen of a lease: how long it has not been renewed, by this process'
// own clock. The times inside the lease come from another host's clock, which may be wrong.
//
// A value that belongs to the standby.
class LeaseSight {
 public:
  // Returns true if the holder of `lease`, which was read just before `now`, holds it no more. The
  // lease's duration begins anew at the first look, and whenever the lease was taken or renewed
  // since the look before.
  bool HasRunOut(const LeaseObject& lease, Instant now);

 private:
  std::string version_;
  Instant since_;
};

}  // namespace hlaunch
