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
  std::string folder = "/var/lib/hlaunchd";  // Its certificate and where the head is.
  std::string parts = "/var/spool/hlaunch";  // Of jobs.
  std::string socket = "/run/hlaunch/hlaunchd.sock";
  std::string config = "/etc/hlaunch/hlaunchd.conf";
  std::string program;  // `hlaunch`; empty: where it is installed beside hlaunchd.
  std::string sysroot;
  bool verbose = false;
  std::optional<std::string> text_to_print;
};

// Errors:
//   InvalidArgument - a word is wrong; the message says which and why.
absl::StatusOr<DaemonOptions> ParseDaemonOptions(int argc, const char* const* argv);

// Where `hlaunch` is, seen from the path of hlaunchd: in the same folder, or in bin/ beside it. The
// first one that is there, else the last.
std::string FindHlaunch(absl::string_view path_of_daemon);

}  // namespace hlaunch
