// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

#include "proto/base/clock.h"

// How fast this machine computes, by fixed work whose result is known. Thread-safe.

namespace hlaunch {

struct CpuSpeed {
  Duration time{};     // CPU time of the fastest repetition: what else runs here hardly matters.
  bool exact = false;  // All results were right. If not, this CPU must not be used.
};

// A repetition takes one to two milliseconds of one core.
CpuSpeed MeasureCpu(int repetitions);

// Bytes copied for each second of CPU time, of the fastest repetition. Takes twice `bytes` of
// memory; 0 if there is none to be had.
double MeasureMemory(size_t bytes, int repetitions);

}  // namespace hlaunch
