// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

#include "proto/base/clock.h"

// The limits that more than one process knows: an agent cuts its data to them, and the rendezvous
// accepts no more.

namespace hlaunch {

// Limits of one job.
inline constexpr int kMaxNodes = 1 << 16;
inline constexpr int kMaxNproc = 1 << 12;  // Workers on one node.

inline constexpr size_t kMaxNameBytes = 256;   // Of a job id, a node id, a host or an address.
inline constexpr size_t kMaxTextBytes = 4096;  // Of a reason, a message or any other text.
inline constexpr size_t kMaxTracebackBytes = 4096;
inline constexpr size_t kMaxTailBytes = 4096;  // Of the last lines of a worker's stderr.

// Addresses that one node announces besides the one on its route to the rendezvous; and those of
// all members together that node rank 0 is told: some 10 MB at most.
inline constexpr size_t kMaxOtherAddresses = 16;
inline constexpr size_t kMaxMemberAddresses = 1 << 18;

inline constexpr size_t kMaxFailures = 16;   // Of one round: from one node, and kept for all nodes.
inline constexpr size_t kMaxHistory = 16;    // Restarts, and exclusions, in the report.
inline constexpr size_t kMaxFindings = 16;   // About nodes, and about links, from one node.
inline constexpr size_t kMaxUnreached = 32;  // Nodes that one node reports as unreachable.
inline constexpr size_t kMaxNews = 4;        // In one directive.

// The members of a proposed round answer within this time; each gives up its own checks earlier.
inline constexpr Duration kPreflightTime = std::chrono::seconds(15);
inline constexpr Duration kFullPreflightTime = std::chrono::seconds(60);

// Limits of a status for people.
inline constexpr size_t kMaxNodesShown = 4096;
inline constexpr size_t kMaxRoundsShown = 20;
inline constexpr int kMaxJobsShown = 1024;

}  // namespace hlaunch
