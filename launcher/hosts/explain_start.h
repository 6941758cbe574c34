// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {

// What is known of a start on one host that did not succeed. A value.
struct FailedStart {
  std::string host;           // As the user wrote it, with the user's name.
  std::string starter;        // The program that was to start it: "ssh".
  std::string agent_path;     // What was to be run over there.
  bool started = false;       // The agent's first line came.
  std::string other_version;  // The version over there; empty: it is ours.
  std::string own_version;
  bool pushed = false;     // The program was sent along.
  std::string error_kind;  // The agent's own word for what it met: "directory", "reach", …
  std::string error;       // The same as a line.
  bool timed_out = false;
  int waited_s = 0;              // If so, for so long.
  std::optional<int> exit_code;  // Unset: killed, or it has not exited.
  int signal = 0;
  std::vector<std::string> last_lines;  // Of stderr, and of stdout before the agent's first line.
};

// A line each. A value.
struct StartVerdict {
  std::string cause;           // In the starter's own words where it has any.
  std::string way_out;         // What helps; empty: nobody knows.
  bool try_again = false;      // The connection was dropped before anything began.
  bool try_the_path = false;   // There is no such file: hlaunch may be in the PATH.
  bool needs_program = false;  // There is none, none that runs, or another version.
};

// Why it failed and what helps. Pure.
StartVerdict ExplainStart(const FailedStart& failed);

}  // namespace hlaunch
