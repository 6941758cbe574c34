// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

namespace hlaunch {

// A worker's number in the job, 0 … world size - 1.
using Rank = int;

// One agreed membership; rounds only grow, and the first is 1. 0 means "none yet".
using Round = int64_t;

// A random number per process start, never 0: tells a restarted agent from the one before.
using Incarnation = uint64_t;

// From the kernel's random source.
Incarnation NewIncarnation();

// 16 hexadecimal digits of the kernel's random source: a job id where the user gave none.
std::string NewJobId();

// 64 hexadecimal digits of the same: a secret.
std::string NewSecret();

// The id of this node where neither a scheduler nor the user numbered it: boot id, network
// namespace and `slot` (0 unless several agents share both). Stable over restarts of the agent.
std::string HostNodeId(int slot);

}  // namespace hlaunch
