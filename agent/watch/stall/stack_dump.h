// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/workers/process/descendants.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A process whose stacks are wanted. A value.
struct StackTarget {
  ProcessEntry process;
  // The process said that it writes its stacks to this descriptor of its own on this signal; 0 if
  // it did not say so.
  int stack_signal = 0;
  int stack_fd = -1;
};

// What was found about one process. A value.
struct ProcessStacks {
  std::string process;  // "python3[4711], state S in futex_wait"
  std::string text;     // All its threads, as py-spy, faulthandler or gdb print them; may be empty.
  std::string problem;  // Why there are no stacks, and what to install.
};

// Returns the descriptor to which Python's faulthandler in that process writes its stacks on a
// signal, if hlaunch's own code set it up; -1 if there is none.
int FindStacksFile(pid_t pid);

// Collects the stacks of processes, one process after the other: with py-spy if it is installed,
// else with Python's faulthandler if the process has set it up, else with gdb. A signal is sent to
// a process only if the process catches that signal.
//
// Belongs to the loop thread. Destruction gives up and calls nothing.
class StackDump {
 public:
  // `tools` is a directory, or empty: py-spy is looked for there and then in PATH. `done` is called
  // once, from the loop, after `limit` at the latest, with an entry for each of `targets`.
  StackDump(asio::io_context& loop, std::vector<StackTarget> targets, const std::string& tools,
            Duration limit, std::function<void(std::vector<ProcessStacks>)> done);
  ~StackDump();

  pid_t tool() const;  // A child process that this object reaps; 0 if none runs.

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with the loop's pending handlers.
};

}  // namespace hlaunch
