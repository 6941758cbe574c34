// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/watch/hang/node_look.h"
#include "rendezvous/round/hang/rank_snapshot.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What the stack of an MPI program shows. A value.
struct MpiStack {
  bool known = false;
  std::string function;  // The outermost function of MPI, as gdb names it; empty if there is none.
  std::string place;     // The user's own: what called it, else what it is in.
  uint64_t returns_to = 0;  // Where that function goes on in its caller's code; 0: not known.
};

// Reads what py-spy or gdb have printed. Pure.
MpiStack ReadMpiStack(absl::string_view text);

// Looks at those workers of this node that are MPI programs: by what the kernel knows of them, and
// when it is told to, by their stacks. It remembers which of them are what they were.
//
// Belongs to the loop thread. The destructor gives up and calls nothing.
class MpiLook {
 public:
  MpiLook(asio::io_context& loop, const LookPlan& plan);
  ~MpiLook();

  // Process `pid`, a child of this one, runs that worker until Ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // Looks at all of them; with `stacks`, also at the stacks of those that may wait or be waited
  // for. A tool stops them for that, one after the other, for some hundred milliseconds. `done` is
  // called once, it may be before this returns; it may destroy this object. Requires: no look is in
  // progress.
  void Look(bool stacks, std::function<void()> done);

  // The result of the last look; empty if a worker that runs is no MPI program.
  std::vector<RankSnapshot> snapshots() const;

  pid_t tool() const;  // A child of this process that is no worker; 0 if there is none.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
