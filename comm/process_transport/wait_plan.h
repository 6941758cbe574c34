// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// How a rank waits for another rank: it looks `spins` times, then `yields` times and yields the
// processor after each look, but for a millisecond at most, and then sleeps until it is woken.
struct WaitPlan {
  int spins;
  int yields;
};

// With a core for each rank of the host, spinning harms no other rank and is fastest. With fewer
// cores, a rank that spins may keep the rank it waits for from running. Pure.
WaitPlan PlanWait(int local_ranks, int cores);

// The number of cores that this process may use.
int CpusToSpinOn();

}  // namespace hlaunch
