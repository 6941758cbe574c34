// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/wait_plan.h"

#include <sched.h>

#include <algorithm>

namespace hlaunch {

WaitPlan PlanWait(int local_ranks, int cores) {
  if (local_ranks <= cores) return {.spins = 2000, .yields = 1000};
  return {.spins = 20, .yields = 100};
}

int CpusToSpinOn() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace hlaunch
