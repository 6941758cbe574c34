// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/health_helper.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/process.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxOutput = 1 << 20;  // What is more is no list of results.

}  // namespace

struct HealthHelper::State : std::enable_shared_from_this<State> {
  State(asio::io_context& in, std::vector<AwaitedCheck> wanted,
        std::function<void(std::vector<CheckResult>)> tell_whom)
      : loop(in),
        pipe(in),
        exit(in),
        timer(in),
        checks(std::move(wanted)),
        done(std::move(tell_whom)) {}

  void Start(const std::vector<std::string>& argv) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Later(std::strerror(errno));
    UniqueFd read_end(ends[0]);
    const UniqueFd write_end(ends[1]);
    Command command;
    command.argv = argv;
    for (char** entry = environ; *entry != nullptr; ++entry) command.env.emplace_back(*entry);
    command.stdout_fd = write_end.get();
    absl::StatusOr<Process> started = Process::Spawn(command);
    if (!started.ok()) return Later(std::string(started.status().message()));
    process.emplace(std::move(started).value());
    pipe.assign(read_end.Release());
    begin = MonotonicClock().Now();
    Read();
    Await();
  }

  // For what may still come, as long as any of it may; what its limit has passed for does not.
  void Await() {
    const Instant now = MonotonicClock().Now();
    std::optional<Instant> next;
    for (const AwaitedCheck& check : checks) {
      const Instant end = begin + check.limit;
      if (results.contains(check.name) || end <= now) continue;
      next = std::min(next.value_or(end), end);
    }
    if (!next) return Finish("");
    if (awaiting == next) return;
    awaiting = next;
    timer.expires_at(*next);
    timer.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->Await();
    });
  }

  void Later(std::string why) {
    asio::post(loop, [self = shared_from_this(), why = std::move(why)] { self->Finish(why); });
  }

  void Read() {
    pipe.async_read_some(asio::buffer(chunk),
                         [self = shared_from_this()](const asio::error_code& error, size_t length) {
                           self->text.append(self->chunk.data(), length);
                           self->TakeLines();
                           if (self->done == nullptr) return;
                           if (error || self->text.size() > kMaxOutput) return self->AwaitExit();
                           self->Read();
                         });
  }

  void TakeLines() {
    for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
      if (auto result = FromLine(absl::string_view(text).substr(0, end))) {
        results[result->name] = std::move(*result);
      }
    }
    if (done != nullptr) Await();
  }

  void AwaitExit() {
    if (!process) return;
    exit.assign(::fcntl(process->pidfd(), F_DUPFD_CLOEXEC, 0));
    exit.async_wait(asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](const asio::error_code& error) {
                      if (error || !self->process) return;
                      const ExitStatus status = self->process->Reap();
                      self->process.reset();
                      self->Finish(absl::StrCat("the checks ended with ", status.ToString()));
                    });
  }

  // `why` is said of what is missing; empty: its time was up.
  void Finish(const std::string& why) {
    Stop();
    std::vector<CheckResult> all;
    for (const AwaitedCheck& check : checks) {
      if (const auto it = results.find(check.name); it != results.end()) {
        all.push_back(it->second);
        continue;
      }
      const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(check.limit);
      const std::string late =
          absl::StrCat("it did not end within ", static_cast<double>(limit.count()) / 1000, " s");
      all.push_back({check.name, {}, "", CheckState::kUnknown, why.empty() ? late : why, ""});
    }
    if (auto tell = std::exchange(done, nullptr)) tell(std::move(all));
  }

  void Stop() {
    asio::error_code ignored;
    timer.cancel();
    pipe.close(ignored);
    exit.close(ignored);
    process.reset();  // Kills what still runs.
  }

  asio::io_context& loop;
  asio::posix::stream_descriptor pipe;
  asio::posix::stream_descriptor exit;
  asio::steady_timer timer;
  const std::vector<AwaitedCheck> checks;
  Instant begin;
  std::optional<Instant> awaiting;
  std::function<void(std::vector<CheckResult>)> done;
  std::optional<Process> process;
  std::array<char, 4096> chunk{};
  std::string text;
  std::map<std::string, CheckResult> results;
};

HealthHelper::HealthHelper(asio::io_context& loop, const std::vector<std::string>& argv,
                           std::vector<AwaitedCheck> checks,
                           std::function<void(std::vector<CheckResult>)> done)
    : state_(std::make_shared<State>(loop, std::move(checks), std::move(done))) {
  state_->Start(argv);
}

HealthHelper::~HealthHelper() {
  state_->done = nullptr;
  state_->Stop();
}

}  // namespace hlaunch
