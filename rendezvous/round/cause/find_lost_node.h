// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

// Decides whether a lost node caused failures that look like the consequence of another one. Pure:
// uses what is known of the nodes, but no clock.

namespace hlaunch {

// A node whose connection broke has this long to come back before it is taken for the cause.
inline constexpr Duration kComesBack = std::chrono::milliseconds(500);

// What the rendezvous knows of a node that still has workers in the round. A value.
struct SignOfLife {
  std::string host;
  bool answered = false;  // It was heard from after it was asked, at the time of the failure.
  // How long its connection has been gone; unset if it is connected.
  std::optional<Duration> broken;
  Duration silence{};  // Time since it was last heard from.
};

struct LostNodeVerdict {
  std::optional<size_t> lost;  // Index in the given nodes; unset if none is lost.
  std::string reason;          // Why that node, in one line: "it was not heard of for 5 s".
  Duration wait{};  // If none is lost: how long an answer may still take; zero if all answered.
};

// Returns the node whose connection has been broken longest, if that is at least kComesBack; else
// the node that has been silent longest, if it did not answer for a lease. Waits for a node that
// has not answered until its lease is over.
LostNodeVerdict FindLostNode(const std::vector<SignOfLife>& nodes, const Lease& lease);

}  // namespace hlaunch
