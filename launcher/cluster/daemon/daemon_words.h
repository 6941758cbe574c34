// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// hlaunchd's command line. A value.
struct DaemonOptions {
  std::string folder = "/var/lib/hlaunchd";  // Has the host's certificate and its head's place.
  std::string parts = "/var/spool/hlaunch";  // Has the parts of jobs.
  std::string socket = "/run/hlaunch/hlaunchd.sock";
  std::string config = "/etc/hlaunch/hlaunchd.conf";
  std::string program;  // The path of `hlaunch`; empty: FindHlaunch finds it.
  std::string sysroot;
  bool verbose = false;
  std::optional<std::string> text_to_print;
};

// Errors:
//   InvalidArgument - a word is wrong; the message says which one and why.
absl::StatusOr<DaemonOptions> ParseDaemonOptions(int argc, const char* const* argv);

// Finds `hlaunch` from the path of hlaunchd: in the same folder, or else in bin/ beside that
// folder. Returns the second path if neither exists.
std::string FindHlaunch(absl::string_view path_of_daemon);

}  // namespace hlaunch
