// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>

#include "agent/events/event_hook.h"
#include "agent/workers/worker/keeper.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// How this node's part ended. A value.
struct NodeEnd {
  int exit_code = 0;  // The exit code of `hlaunch`.
  // Set if this program must begin again, with this number of restarts used. The end was not
  // reported then.
  std::optional<int> restarts_used;
  std::optional<uint64_t> descriptors_before;  // The limit for workers. Unset if it did not change.
};

// Runs this node's part of the job: link → agent → summary. The host of the rendezvous waits until
// the other nodes have heard the outcome, but only for a limited time. No worker lives on return.
// Call once, on the main thread, under the keeper. `restarts_used` is the number that this node
// used before, see DecideJoinAgain. `hook` gets the events of the job.
NodeEnd RunNode(const Options& options, const JobSpec& spec, KeeperLink& keeper, EventHook& hook,
                const ConnectFn& connect, int restarts_used);

}  // namespace hlaunch
