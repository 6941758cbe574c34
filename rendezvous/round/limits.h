// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

#include "proto/base/clock.h"

// The limits that more than one process knows: what an agent cuts to size, the rendezvous accepts.

namespace hlaunch {

// Of one job.
inline constexpr int kMaxNodes = 1 << 16;
inline constexpr int kMaxNproc = 1 << 12;  // Workers on one node.

inline constexpr size_t kMaxNameBytes = 256;   // Of a job id, a node id, a host or an address.
inline constexpr size_t kMaxTextBytes = 4096;  // Of a reason, a message or any other text.
inline constexpr size_t kMaxTracebackBytes = 4096;
inline constexpr size_t kMaxTailBytes = 4096;  // Of the last lines of a worker's stderr.

// Addresses of one node besides the one on its route to the rendezvous; and of all members
// together, as node rank 0 is told them: some 10 MB at the most.
inline constexpr size_t kMaxOtherAddresses = 16;
inline constexpr size_t kMaxMemberAddresses = 1 << 18;

inline constexpr size_t kMaxFailures = 16;   // Of one round: told by one node, and kept of all.
inline constexpr size_t kMaxHistory = 16;    // Restarts, and exclusions, that the report tells of.
inline constexpr size_t kMaxFindings = 16;   // About nodes, and about links, that one node tells.
inline constexpr size_t kMaxUnreached = 32;  // Nodes that one node misses and tells of.
inline constexpr size_t kMaxNews = 4;        // That a directive carries.

// For the members of a proposed round to answer: each gives up its own checks before.
inline constexpr Duration kPreflightTime = std::chrono::seconds(15);
inline constexpr Duration kFullPreflightTime = std::chrono::seconds(60);

// What a status shows.
inline constexpr size_t kMaxNodesShown = 4096;
inline constexpr size_t kMaxRoundsShown = 20;
inline constexpr int kMaxJobsShown = 1024;

}  // namespace hlaunch
