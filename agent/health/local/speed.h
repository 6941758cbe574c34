// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

#include "proto/base/clock.h"

// Measures how fast this machine computes, with fixed work whose result is known. Thread-safe.

namespace hlaunch {

struct CpuSpeed {
  Duration time{};     // CPU time of the fastest repetition, so other load hardly matters.
  bool exact = false;  // All results were right. If not, this CPU must not be used.
};

// A repetition takes one to two milliseconds of one core.
CpuSpeed MeasureCpu(int repetitions);

// Returns the bytes copied per second of CPU time in the fastest repetition. Takes twice `bytes` of
// memory; returns 0 if that much is not available.
double MeasureMemory(size_t bytes, int repetitions);

}  // namespace hlaunch
