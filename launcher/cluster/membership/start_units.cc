// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/start_units.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/workers/process/tool_run.h"
#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(120);  // A unit has 90 s to be ready.

std::filesystem::path ListenDropIn(const std::string& units) {
  return absl::StrCat(units, "/", kHeadUnit, ".d/listen.conf");
}

}  // namespace

bool SystemdRuns() {
  std::error_code error;  // As in sd_booted(3).
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
  const std::filesystem::path path = ListenDropIn(units);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path);
  file << "# Written by hlaunch cluster init.\n[Service]\nEnvironment=LISTEN=" << listen << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path.string()));
}

absl::StatusOr<bool> RemoveListenDropIn(const std::string& units) {
  const std::filesystem::path path = ListenDropIn(units);
  std::error_code error, not_empty;
  const bool was_there = std::filesystem::remove(path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot remove ", path.string(), ": ", error.message()));
  }
  if (was_there) std::filesystem::remove(path.parent_path(), not_empty);
  return was_there;
}

}  // namespace hlaunch
