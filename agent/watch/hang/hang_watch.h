// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/watch/hang/slow_watch.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A rank of this node that holds up the job, or one of several that hold up each other. A value.
struct HangCulprit {
  int local_rank = 0;
  std::string reason;  // "hangs: it has not come to all_reduce number 1204 of …", in one line.
};

// Watches the ranks of one round through torch's flight recorders. When they have come to a
// standstill, it tells a person which rank holds them up and what that rank does. The other nodes
// tell node rank 0 what their ranks do, and it judges for all.
//
// Belongs to the loop thread. It asks each rank one or two questions every few seconds.
class HangWatch {
 public:
  // Called from the loop with each culprit on this node; may not destroy the watch.
  using OnHang = std::function<void(const HangCulprit&)>;
  // Called from the loop with a text for the watches of the other nodes: from node rank 0 for all
  // of them, from others for node rank 0. A text may be lost, so it is told again and again.
  using TellNodes = std::function<void(std::string text)>;
  // Called on node rank 0 after each look, with what is known of slow ranks. May be empty.
  using OnSlow = std::function<void(const SlowNews&)>;

  // Null if there is nothing to watch: there is no tap, --hang-timeout is off, or the worker starts
  // others itself.
  static std::unique_ptr<HangWatch> Open(asio::io_context& loop, const Assignment& assignment,
                                         const WorkerSpec& spec, const NodeFacts& facts,
                                         OnHang on_hang, TellNodes tell, OnSlow on_slow = {});
  ~HangWatch();

  // Process `pid`, a child of this one, runs that worker until Ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // The watch of that node has told `text`.
  void Hear(int node_rank, const std::string& text);

  // Describes for a person what stands still at this moment, if it was not reported before. Empty
  // if nothing stands still, if the standstill has just begun, or if another node judges.
  std::string standstill() const;

  std::vector<pid_t> tools() const;  // Children of this process that are not workers.

 private:
  struct State;
  explicit HangWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
