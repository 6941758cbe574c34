// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {

// What is known of a failed start on one host. A value.
struct FailedStart {
  std::string host;           // As the user wrote it, with the user's name.
  std::string starter;        // The program that should start it, as in "ssh".
  std::string agent_path;     // The path of hlaunch on that host.
  bool started = false;       // The agent's first line has come.
  std::string other_version;  // The version on that host; empty: it is ours.
  std::string own_version;
  bool pushed = false;     // The program was sent to the host.
  std::string error_kind;  // The agent's word for its error: "directory", "reach", …
  std::string error;       // The same error as a line of text.
  bool timed_out = false;
  int waited_s = 0;              // If so, the seconds that it waited.
  std::optional<int> exit_code;  // Unset if it was killed or has not exited.
  int signal = 0;
  std::vector<std::string> last_lines;  // Of stderr, and of stdout before the agent's first line.
};

// Each text is one line. A value.
struct StartVerdict {
  std::string cause;           // In the starter's own words if it has any.
  std::string way_out;         // What helps; empty if that is not known.
  bool try_again = false;      // The connection was dropped before anything began.
  bool try_the_path = false;   // No such file: hlaunch may be in the PATH.
  bool needs_program = false;  // hlaunch is missing, does not run, or has another version.
};

// Returns why the start failed and what helps. Pure.
StartVerdict ExplainStart(const FailedStart& failed);

}  // namespace hlaunch
