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

// How it ended. A value.
struct LineProcessEnd {
  std::string why;       // "it ended with exit code 1", or why it could not be started or heard.
  bool missing = false;  // There is no such program.
  bool success = false;  // It exited with 0.
  int exit_code = -1;    // As a shell has it; -1: it did not exit by itself.
};

// A process that tells what it finds in lines of at most a mebibyte, and may be killed at any
// time: it is for a longer one.
//
// Belongs to the loop thread. Destruction kills the process and gives up without a word.
class LineProcess {
 public:
  struct Events {
    std::function<void(absl::string_view)> on_line;     // Without its end.
    std::function<void(const LineProcessEnd&)> on_end;  // Once: nothing more will come.
  };

  // Starts `argv`; what fails is told by on_end. The events are called from the loop, and may
  // destroy the process. It reads a standard input that has what Say was given and ends with
  // CloseInput; what it says on stderr is ours, or is among the lines.
  enum class Stderr { kOurs, kLines };
  LineProcess(asio::io_context& loop, const std::vector<std::string>& argv, Events events,
              Stderr to = Stderr::kOurs);
  ~LineProcess();

  // Gives it a line, without its end; it is lost if the process has ended, or has not read 64 KiB
  // of such.
  void Say(absl::string_view line);
  void CloseInput();
  // Tells at once, from within, what it has said until now, and its end if it has closed its
  // output or is on its way out: whoever lost a connection to it finds its end told.
  // Blocks until it has ended, at most a second.
  void TellNow();
  pid_t pid() const;  // 0: it does not live.

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with what is under way in the loop.
};

}  // namespace hlaunch
