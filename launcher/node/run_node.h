// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>

#include "agent/event_hook/event_hook.h"
#include "agent/worker/keeper.h"
#include "launcher/job/job_spec.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// How this node's part ended. A value.
struct NodeEnd {
  int exit_code = 0;  // What `hlaunch` exits with.
  // Set: this program is to begin again, with so many restarts used up; nothing was told.
  std::optional<int> restarts_used;
  std::optional<uint64_t> descriptors_before;  // The limit that workers had; unset: as it is.
};

// Runs this node's part of the job: link → agent → summary. The host of the rendezvous stays
// until the other nodes have heard the outcome, within bounds. No worker lives on return. Call
// once, on the main thread, under the keeper. `restarts_used`: by this node before, see
// DecideJoinAgain. `hook` is told what becomes of the job.
NodeEnd RunNode(const Options& options, const JobSpec& spec, KeeperLink& keeper, EventHook& hook,
                const ConnectFn& connect, int restarts_used);

}  // namespace hlaunch
