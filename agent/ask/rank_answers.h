// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "agent/hang/node_look.h"
#include "rendezvous/job/question.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Answers what people ask of the workers of one round on this node: one question after the other.
//
// Belongs to the loop thread, and never holds it up. Nothing runs while nobody asks. Destruction
// gives up without a word.
class RankAnswers {
 public:
  // What `plan` says of patience and limits does not hold here: a person waits.
  RankAnswers(asio::io_context& loop, LookPlan plan);
  ~RankAnswers();

  // Process `pid`, a child of this one, is that worker, until it has ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // `done` is called once, from the loop; it may not destroy this.
  void Answer(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

  // Children of this process that are no workers.
  std::vector<pid_t> tools() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
