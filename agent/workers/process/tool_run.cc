// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/tool_run.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/line_process.h"
#include "agent/workers/process/process.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {

struct ToolRun::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, std::function<void(ToolOutput)> tell_whom)
      : timer(loop), done(std::move(tell_whom)) {}

  void Start(asio::io_context& loop, const std::vector<std::string>& argv, Duration limit) {
    timer.expires_after(limit);
    timer.async_wait([self = shared_from_this(), limit](const asio::error_code& error) {
      if (error) return;
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
      self->Finish(
          absl::StrCat("it did not end within ", static_cast<double>(ms.count()) / 1000, " s"));
    });
    process.emplace(loop, argv,
                    LineProcess::Events{[this](absl::string_view line) { Take(line); },
                                        [this](const LineProcessEnd& end) {
                                          output.missing = end.missing;
                                          output.exit_code = end.exit_code;
                                          Finish(end.success ? "" : end.why);
                                        }},
                    LineProcess::Stderr::kLines);
  }

  void Take(absl::string_view line) {
    const size_t room = kMaxBytes - output.text.size();
    absl::StrAppend(&output.text, line.substr(0, room));
    if (line.size() >= room) return Finish("it said too much");
    output.text += '\n';
  }

  void Finish(std::string problem) {
    Stop();
    output.problem = std::move(problem);
    if (auto tell = std::exchange(done, nullptr)) tell(std::move(output));
  }

  void Stop() {
    timer.cancel();
    process.reset();  // Kills the program if it still runs.
  }

  asio::steady_timer timer;
  std::function<void(ToolOutput)> done;
  std::optional<LineProcess> process;
  ToolOutput output;
};

ToolRun::ToolRun(asio::io_context& loop, const std::vector<std::string>& argv, Duration limit,
                 std::function<void(ToolOutput)> done)
    : state_(std::make_shared<State>(loop, std::move(done))) {
  state_->Start(loop, argv, limit);
}

ToolRun::~ToolRun() {
  state_->done = nullptr;
  state_->Stop();
}

pid_t ToolRun::pid() const { return state_->process ? state_->process->pid() : 0; }

namespace {

constexpr size_t kMostBytes = 64 << 10;

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

std::vector<std::string> SystemEnvironment() {
  return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
}

ToolAnswer RunTool(const std::vector<std::string>& argv, Duration patience,
                   std::vector<std::string> environment) {
  const Instant deadline = MonotonicClock().Now() + patience;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Command command;
  command.argv = argv;
  command.env = std::move(environment);
  command.stdout_fd = input.get();
  command.stderr_fd = null.get();
  absl::StatusOr<Process> process = Process::Spawn(std::move(command));
  input.Close();
  if (!process.ok()) return {};
  ToolAnswer answer;
  answer.text = ReadUntil(output.get(), deadline);
  const bool in_time = AwaitReadable(process->pidfd(), deadline);
  if (!in_time) {
    process->SignalGroup(SIGKILL);
    AwaitReadable(process->pidfd(), MonotonicClock().Now() + std::chrono::seconds(1));
  }
  const ExitStatus ended = process->Reap();
  if (in_time && ended.signal == 0) answer.exit_code = ended.exit_code;
  return answer;
}

}  // namespace hlaunch
