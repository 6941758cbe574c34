// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"

namespace hlaunch {

// Limits warnings that strangers can cause to one line in ten seconds. The line tells how many were
// left out.
//
// Belongs to one thread, or to the holder of its owner's lock.
class RareLog {
 public:
  // Returns the line to log now; empty if it is too soon.
  std::string Admit(const std::string& line, Instant now);

 private:
  Instant next_;
  int left_out_ = 0;
};

}  // namespace hlaunch
