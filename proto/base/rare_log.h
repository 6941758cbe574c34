// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"

namespace hlaunch {

// Warnings that strangers can cause: at most one line in ten seconds, which tells how many were
// left out.
//
// Belongs to one thread, or to the holder of its owner's lock.
class RareLog {
 public:
  // The line to log now, empty if it is too soon.
  std::string Admit(const std::string& line, Instant now);

 private:
  Instant next_;
  int left_out_ = 0;
};

}  // namespace hlaunch
