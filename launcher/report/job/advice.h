// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Returns in one line what to do about the failure that ended the job: the advice on the most
// specific sign of the failure, or an empty string. `store_port` is the last round's MASTER_PORT if
// hlaunch served it, else 0. Pure; text of workers and hosts in it is made safe for a terminal.
std::string AdviceFor(const Outcome& outcome, uint16_t store_port);

}  // namespace hlaunch
