// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"
#include "rendezvous/kubernetes/api_objects.h"

namespace hlaunch {

// What one who stands by has seen of a lease: how long it has not been renewed, by this process'
// own clock. The times in it are those of another host's clock, which may be wrong.
//
// A value; belongs to whoever looks.
class LeaseSight {
 public:
  // Whether whoever held `lease`, as it was read by `now`, holds it no more. Where another has just
  // taken it or renewed it, and at the first look, its time begins anew.
  bool HasRunOut(const LeaseObject& lease, Instant now);

 private:
  std::string version_;
  Instant since_;
};

}  // namespace hlaunch
