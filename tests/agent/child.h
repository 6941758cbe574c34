// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/workers/process/process.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

// Helpers for tests with real processes. All waits end after kPatience.

namespace hlaunch {

inline constexpr std::chrono::seconds kPatience(300);

inline bool Readable(int fd) {
  pollfd one = {fd, POLLIN, 0};
  return ::poll(&one, 1, static_cast<int>(kPatience.count() * 1000)) == 1;
}

// Waits until process `pid` has exited; true at once if it does not exist.
inline bool Gone(pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return !pidfd.valid() || Readable(pidfd.get());
}

inline bool Exists(pid_t pid) { return ::kill(pid, 0) == 0; }

inline std::vector<std::string> OurEnvironment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
  return env;
}

// One child whose stdout and stderr are read here. Belongs to one thread.
class Child {
 public:
  explicit Child(Command command) {
    int ends[2];
    HLAUNCH_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    output_ = UniqueFd(ends[0]);
    const UniqueFd write_end(ends[1]);
    command.stdout_fd = command.stderr_fd = write_end.get();
    if (command.env.empty()) command.env = OurEnvironment();
    absl::StatusOr<Process> spawned = Process::Spawn(command);
    HLAUNCH_CHECK(spawned.ok());
    process_.emplace(*std::move(spawned));
  }

  Process& process() { return *process_; }

  // Reads until the output contains `text`; false if the output ends first.
  bool ReadUntil(absl::string_view text) {
    while (seen_.find(text.data(), 0, text.size()) == std::string::npos) {
      if (!ReadMore()) return false;
    }
    return true;
  }
  std::string ReadAll() {
    while (ReadMore()) {
    }
    return seen_;
  }
  const std::string& seen() const { return seen_; }

  // The number that follows `word` in the output.
  pid_t PidAfter(absl::string_view word) {
    HLAUNCH_CHECK(ReadUntil(word));
    const size_t at = seen_.find(word.data(), 0, word.size()) + word.size();
    while (seen_.find('\n', at) == std::string::npos) HLAUNCH_CHECK(ReadMore());
    return std::stoi(seen_.substr(at));
  }

  ExitStatus Wait() {
    HLAUNCH_CHECK(Readable(process_->pidfd()));
    return process_->Reap();
  }

 private:
  bool ReadMore() {
    char buffer[4096];
    HLAUNCH_CHECK(Readable(output_.get()));
    const ssize_t n = ::read(output_.get(), buffer, sizeof(buffer));
    if (n > 0) seen_.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  UniqueFd output_;
  std::optional<Process> process_;
  std::string seen_;
};

}  // namespace hlaunch
