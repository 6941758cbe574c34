// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/jump_hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/process/process.h"
#include "agent/worker/taken_signals.h"
#include "launcher/remote/conductor.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

constexpr Duration kAnswerTime = std::chrono::seconds(5);
constexpr size_t kMaxAnswer = 64 << 10;

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

// Reads `fd` until its end. Empty if the deadline passes first.
std::string ReadAll(int fd, Instant deadline) {
  std::string text;
  char bytes[4096];
  while (text.size() < kMaxAnswer) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(deadline - MonotonicClock().Now(), Duration::zero()));
    pollfd readable = {fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return "";
    const ssize_t n = ::read(fd, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(bytes, static_cast<size_t>(n));
  }
  return text;
}

// ssh's settings for `host`; empty if ssh does not answer.
std::string AskSsh(const Starter& starter, const TargetHost& host) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd read_end(ends[0]), null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  UniqueFd write_end(ends[1]);
  Command command;
  command.argv = SettingsCommand(starter, host);
  for (char** entry = environ; *entry != nullptr; ++entry) command.env.emplace_back(*entry);
  command.stdout_fd = write_end.get();
  command.stderr_fd = null.get();
  absl::StatusOr<Process> ssh = Process::Spawn(std::move(command));
  write_end.Close();
  if (!ssh.ok()) return "";
  std::string settings = ReadAll(read_end.get(), MonotonicClock().Now() + kAnswerTime);
  ssh->SignalGroup(SIGKILL);  // ssh has said everything, or it hangs.
  pollfd exited = {ssh->pidfd(), POLLIN, 0};
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(kAnswerTime).count();
  if (::poll(&exited, 1, static_cast<int>(limit)) == 1) ssh->Reap();
  return settings;
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
