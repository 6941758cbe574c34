// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// How a LineProcess ended. A value.
struct LineProcessEnd {
  std::string why;       // "it ended with exit code 1", or why it could not be started or read.
  bool missing = false;  // There is no such program.
  bool success = false;  // It exited with 0.
  int exit_code = -1;    // As in a shell; -1: it did not exit by itself.
};

// A process that reports in lines of at most a mebibyte; a longer line gets it killed. It must be
// safe to kill at any time.
//
// Belongs to the loop thread. The destructor kills the process and calls no event.
class LineProcess {
 public:
  struct Events {
    std::function<void(absl::string_view)> on_line;     // Without the newline.
    std::function<void(const LineProcessEnd&)> on_end;  // Called once: nothing follows.
  };

  // Starts `argv`; on_end reports a failure. The events are called from the loop, and may destroy
  // this object. The process reads from standard input what Say was given, until CloseInput. Its
  // stderr is hlaunch's own, or its lines are read like those of stdout. If `program_fd` is not -1,
  // the file that it holds is run, and argv[0] is only a name.
  enum class Stderr { kOurs, kLines };
  LineProcess(asio::io_context& loop, const std::vector<std::string>& argv, Events events,
              Stderr to = Stderr::kOurs, int program_fd = -1);
  ~LineProcess();

  // Sends a line, given without its newline. The loop writes what the process does not read now. If
  // the process has ended, or has left over a mebibyte unread, the line is lost and the input is
  // closed.
  void Say(absl::string_view line);
  // Closes the input behind what was said.
  void CloseInput();
  // Calls the events before it returns, for all output until now, and for the end if the process
  // has closed its output or is exiting. So a caller that lost a connection to the process learns
  // of its end first. Blocks until the process has ended, at most a second.
  void TellNow();
  pid_t pid() const;  // 0: it does not run.

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with handlers pending in the loop.
};

}  // namespace hlaunch
