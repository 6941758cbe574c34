// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/join/start_units.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/process/tool_run.h"
#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(120);  // A unit has 90 s to be ready.

}  // namespace

bool SystemdRuns() {
  std::error_code error;  // As sd_booted(3) says it.
  return std::filesystem::is_directory("/run/systemd/system", error);
}

absl::Status AskSystemd(const std::vector<std::string>& what,
                        const std::vector<std::string>& units) {
  std::vector<std::string> argv = {"systemctl"};
  argv.insert(argv.end(), what.begin(), what.end());
  argv.insert(argv.end(), units.begin(), units.end());
  asio::io_context loop;
  ToolOutput output;
  const ToolRun run(loop, argv, kPatience, [&](ToolOutput came) { output = std::move(came); });
  loop.run();
  if (output.problem.empty()) return absl::OkStatus();
  const absl::string_view said = absl::StripAsciiWhitespace(output.text);
  return absl::UnavailableError(absl::StrCat(
      absl::StrJoin(argv, " "), ": ", said.empty() ? output.problem : std::string(said),
      units.empty() ? "" : absl::StrCat("; see: journalctl -u ", units[0])));
}

absl::Status WriteListenDropIn(const std::string& units, const std::string& listen) {
  const std::filesystem::path folder = absl::StrCat(units, "/", kHeadUnit, ".d");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream file(folder / "listen.conf");
  file << "# Written by hlaunch cluster init.\n[Service]\nEnvironment=LISTEN=" << listen << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", (folder / "listen.conf").string()));
}

}  // namespace hlaunch
