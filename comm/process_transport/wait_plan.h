// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// How a rank waits for another: it looks `spins` times, then `yields` times with the rest of its
// time given to others between looks, then sleeps until it is woken.
struct WaitPlan {
  int spins;
  int yields;
};

// With a core for each rank of the host, spinning costs nobody anything and is quickest. With
// fewer, whoever spins keeps the one it waits for from running. Pure.
WaitPlan PlanWait(int local_ranks, int cores);

// Cores that this process may use.
int CpusToSpinOn();

}  // namespace hlaunch
