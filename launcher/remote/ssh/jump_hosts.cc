// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/jump_hosts.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/tool_run.h"
#include "agent/workers/worker/taken_signals.h"
#include "launcher/remote/ssh/conductor.h"
#include "proto/base/clock.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

constexpr Duration kAnswerTime = std::chrono::seconds(5);

// Whether one of the files that ssh reads may name jump hosts.
bool ConfigurationMay(const Starter& starter) {
  if (!starter.ssh_words.empty()) return true;  // These words may name another file.
  std::vector<std::filesystem::path> paths = {"/etc/ssh/ssh_config"};
  if (const char* home = std::getenv("HOME")) {
    paths.push_back(std::filesystem::path(home) / ".ssh/config");
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/etc/ssh/ssh_config.d", error), end;
       !error && entry != end; entry.increment(error)) {
    paths.push_back(entry->path());
  }
  return std::any_of(paths.begin(), paths.end(), [](const auto& path) {
    return MayNameJumpHosts(ReadWholeFile(path).value_or(""));
  });
}

// ssh's settings for `host`; empty if ssh does not answer.
std::string AskSsh(const Starter& starter, const TargetHost& host) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return RunTool(SettingsCommand(starter, host), kAnswerTime, std::move(environment)).text;
}

}  // namespace

std::string JumpHostOf(absl::string_view settings) {
  std::string command;
  for (const absl::string_view line : absl::StrSplit(settings, '\n')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (pair.second.empty() || pair.second == "none") continue;
    if (pair.first == "proxyjump") return pair.second.substr(0, pair.second.find(','));
    if (pair.first == "proxycommand") command = pair.second;
  }
  return command;
}

bool MayNameJumpHosts(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWithIgnoreCase(line, "proxy")) return true;
    // Debian's own file includes this folder, which ConfigurationMay reads as well.
    const bool includes = absl::StartsWithIgnoreCase(line, "include");
    if (includes && !absl::StrContains(line, "/etc/ssh/ssh_config.d/")) return true;
  }
  return false;
}

std::vector<std::string> FindJumpHosts(const Starter& starter, const std::vector<TargetHost>& hosts,
                                       const std::vector<bool>& own) {
  std::vector<std::string> jumps(hosts.size());
  if (!starter.agent.empty() || hosts.size() <= Conductor::kInFlightOfJump ||
      !ConfigurationMay(starter)) {
    return jumps;
  }
  const Instant deadline = MonotonicClock().Now() + kAnswerTime;  // For all hosts together.
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (TerminationPending() || MonotonicClock().Now() > deadline) break;
    if (!own[i]) jumps[i] = JumpHostOf(AskSsh(starter, hosts[i]));
  }
  return jumps;
}

}  // namespace hlaunch
