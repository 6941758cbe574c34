// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/round.h"

// The decision whether a node is behind failures that look like the consequence of another one.
// Pure: what is known of the nodes, no clock.

namespace hlaunch {

// How long a node whose connection broke may take to come back before it is held for the cause.
inline constexpr Duration kComesBack = std::chrono::milliseconds(500);

// What the rendezvous knows of a node of the round whose workers are not done. A value.
struct SignOfLife {
  std::string host;
  bool answered = false;  // It was heard of since it was asked, which was at the failure.
  std::optional<Duration>
      broken;          // For so long its connection has been gone; nothing: it is there.
  Duration silence{};  // Since it was last heard of.
};

struct LostNodeVerdict {
  std::optional<size_t> lost;  // In the nodes that were asked about.
  std::string reason;          // Why that one, in one line: "it was not heard of for 5 s".
  Duration wait{};             // Else how long an answer may still take; zero: all have answered.
};

// Of `nodes` the one whose connection is broken for longest, else the one that is silent for
// longest, if that is beyond kComesBack, or the lease. A node that has not answered is waited for
// until its lease is over.
LostNodeVerdict FindLostNode(const std::vector<SignOfLife>& nodes, const Lease& lease);

}  // namespace hlaunch
