// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/descendants.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A process whose stacks are wanted. A value.
struct StackTarget {
  ProcessEntry process;
  // It writes them to this descriptor of its own on this signal, by its own word; 0: it does not.
  int stack_signal = 0;
  int stack_fd = -1;
};

// What was found of one process. A value.
struct ProcessStacks {
  std::string process;  // "python3[4711], state S in futex_wait"
  std::string text;  // All its threads, in the words of py-spy, faulthandler or gdb; may be empty.
  std::string problem;  // Why there are none, and what to install.
};

// The descriptor to which Python's faulthandler in that process writes its stacks on a signal,
// where it was set up by hlaunch's own word; -1: none.
int FindStacksFile(pid_t pid);

// Collects the stacks of processes, one after the other: py-spy where it is installed, else
// Python's faulthandler where the process has set it up, else gdb. A signal is sent to a process
// only if it catches that signal.
//
// Belongs to the loop thread. Destruction gives up without a word.
class StackDump {
 public:
  // py-spy is looked for in `tools`, a directory or empty, and then in PATH. `done` is called once,
  // from the loop, after `limit` at the latest, with an entry for each of `targets`.
  StackDump(asio::io_context& loop, std::vector<StackTarget> targets, const std::string& tools,
            Duration limit, std::function<void(std::vector<ProcessStacks>)> done);
  ~StackDump();

  pid_t tool() const;  // A child of this process that this object reaps; 0: none runs.

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with what is under way in the loop.
};

}  // namespace hlaunch
