// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "agent/watch/hang/node_look.h"
#include "rendezvous/job/question.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Answers what people ask about the workers of one round on this node, one question after the
// other.
//
// Belongs to the loop thread and never blocks it. Nothing runs while there is no question.
// Destruction gives up and calls nothing.
class RankAnswers {
 public:
  // The patience and limits of `plan` do not apply here, because a person waits.
  RankAnswers(asio::io_context& loop, LookPlan plan);
  ~RankAnswers();

  // Says that process `pid`, a child of this process, is that worker, until Ended is called.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // `done` is called once, from the loop, or from within this call if too many questions wait. It
  // must not destroy this object.
  void Answer(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

  // Returns the child processes that are not workers.
  std::vector<pid_t> tools() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
