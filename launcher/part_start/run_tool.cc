// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/part_start/run_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agent/process/process.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr char kPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Waits until `fd` is readable. Returns false if `deadline` has passed.
bool AwaitReadable(int fd, Instant deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
    pollfd readable = {fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

std::string ReadUntil(int fd, Instant deadline) {
  std::string text;
  while (text.size() < kMostBytes && AwaitReadable(fd, deadline)) {
    char bytes[4096];
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) break;
    text.append(bytes, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

ToolAnswer RunTool(const std::vector<std::string>& argv, Duration patience) {
  const Instant deadline = MonotonicClock().Now() + patience;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Command command;
  command.argv = argv;
  command.env = {kPath, "LC_ALL=C"};
  command.stdout_fd = input.get();
  command.stderr_fd = null.get();
  absl::StatusOr<Process> process = Process::Spawn(std::move(command));
  input.Close();
  if (!process.ok()) return {};
  ToolAnswer answer;
  answer.text = ReadUntil(output.get(), deadline);
  const bool in_time = AwaitReadable(process->pidfd(), deadline);
  if (!in_time) {
    process->Signal(SIGKILL);
    AwaitReadable(process->pidfd(), MonotonicClock().Now() + std::chrono::seconds(1));
  }
  const ExitStatus ended = process->Reap();
  if (in_time && ended.signal == 0) answer.exit_code = ended.exit_code;
  return answer;
}

}  // namespace hlaunch
