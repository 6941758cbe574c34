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

// Draws a number from the kernel's random source.
Incarnation NewIncarnation();

// A job id if the user gave none: 16 hexadecimal digits from the kernel's random source.
std::string NewJobId();

// A secret: 64 hexadecimal digits from the same source.
std::string NewSecret();

// The id of this node if neither a scheduler nor the user numbered it: boot id, network namespace
// and `slot` (0 unless several agents share both). It stays the same if the agent restarts.
std::string HostNodeId(int slot);

// Names this machine as this process sees it: its boot and the network and mount namespaces. Two
// processes with the same name use the same devices. Empty: it cannot be told.
std::string OwnMachine();

}  // namespace hlaunch
