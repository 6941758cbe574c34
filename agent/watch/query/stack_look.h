// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "agent/watch/hang/node_look.h"
#include "agent/watch/query/merge_stacks.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A worker whose stack is wanted. A value.
struct StackWanted {
  Rank rank = 0;
  pid_t pid = 0;
};

// Takes the stack of each worker's main thread. It asks torch's control server in the worker, which
// stops no process. Without an answer, or if C's frames are wanted, it works as StackDump does, one
// worker after the other.
//
// Belongs to the loop thread. Destruction gives up and calls nothing.
class StackLook {
 public:
  // `done` is called once, from the loop, after `limit` at the latest, with an entry for each of
  // `wanted`.
  StackLook(asio::io_context& loop, const LookPlan& plan, std::vector<StackWanted> wanted,
            bool native, Duration limit, std::function<void(std::vector<SharedStack>)> done);
  ~StackLook();

  pid_t tool() const;  // As StackDump::tool.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
