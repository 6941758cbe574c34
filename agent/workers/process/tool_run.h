// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The output of a program. A value.
struct ToolOutput {
  std::string text;      // stdout and stderr, at most ToolRun::kMaxBytes.
  std::string problem;   // Why the output is not complete; empty: the program exited with 0.
  bool missing = false;  // There is no such program.
  int exit_code = -1;    // -1: it did not exit by itself.
};

// Runs a program for its output, and kills it if it takes too long or prints too much.
//
// Belongs to the loop thread. The destructor kills the program and does not call `done`; the
// reaping of orphans then reaps the program.
class ToolRun {
 public:
  static constexpr size_t kMaxBytes = 256 << 10;

  // Starts `argv`; `done` is called once, from the loop.
  ToolRun(asio::io_context& loop, const std::vector<std::string>& argv, Duration limit,
          std::function<void(ToolOutput)> done);
  ~ToolRun();

  pid_t pid() const;  // A child that this object reaps; 0: it does not run.

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with handlers pending in the loop.
};

// What a system program printed and how it ended. A value.
struct ToolAnswer {
  std::string text;    // Its stdout, at most 64 KiB.
  int exit_code = -1;  // -1: the program could not be run, was killed, or took too long.
};

// PATH as a system's program has it, and messages in English.
std::vector<std::string> SystemEnvironment();

// Runs `argv`, whose program is looked up in the PATH of `environment`, with no input. Kills it and
// its own children after `patience`. Blocks: in a loop use ToolRun.
ToolAnswer RunTool(const std::vector<std::string>& argv, Duration patience,
                   std::vector<std::string> environment = SystemEnvironment());

}  // namespace hlaunch
