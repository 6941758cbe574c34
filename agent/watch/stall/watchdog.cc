// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/watchdog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/output/agent_directory.h"
#include "agent/watch/stall/watchdog_timers.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/process.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/system_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

constexpr size_t kReadBytes = 64 << 10;  // What a pipe holds.
constexpr size_t kScopeShown = 120;
constexpr WallSeconds kLongWait = 3600;  // The clock is read again after this.

std::string Inherited(const WorkerSpec& spec, absl::string_view name) {
  for (absl::string_view entry : spec.inherited_env) {
    if (absl::ConsumePrefix(&entry, name) && absl::ConsumePrefix(&entry, "=")) {
      return std::string(entry);
    }
  }
  return "";
}

std::string Errno() { return std::strerror(errno); }

// True if another process reads from the pipe at `path`: an agent around or beside this one.
bool IsServed(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).valid();
}

// Removes what a killed agent left at the user's name for the pipe. Returns false if the name is in
// use.
absl::StatusOr<bool> FreeName(const std::string& path) {
  struct stat st = {};
  if (::lstat(path.c_str(), &st) != 0) return true;
  if (!S_ISFIFO(st.st_mode)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kEnvTimerFile, "=", path, " is there and is no pipe; remove it, or name another"));
  }
  if (IsServed(path)) return false;
  ::unlink(path.c_str());
  return true;
}

absl::StatusOr<std::string> PipeName(const WorkerSpec& spec) {
  if (const std::string named = Inherited(spec, kEnvTimerFile); !named.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(const bool is_free, FreeName(named));
    if (is_free) return named;
    LogWarning(absl::StrCat(kEnvTimerFile, "=", named,
                            " serves another agent's workers; these get a pipe of their own"));
  }
  return absl::StrCat(TemporaryDirectory(), "/watchdog_timer_", NewJobId());
}

WallSeconds WallNow() {
  return std::chrono::duration<WallSeconds>(std::chrono::milliseconds(WallMillis())).count();
}

uint64_t StartTime(pid_t pid) {
  const std::optional<ProcessEntry> process = ReadProcess(pid);
  return process ? process->start_time : 0;
}

std::string Shown(const std::string& scope) {
  return absl::Utf8SafeCHexEscape(absl::string_view(scope).substr(0, kScopeShown));
}

}  // namespace

struct Watchdog::State {
  State(asio::io_context& loop, std::string the_path, OnKill the_on_kill)
      : path(std::move(the_path)), on_kill(std::move(the_on_kill)), pipe(loop), timer(loop) {}

  const std::string path;
  const OnKill on_kill;
  asio::posix::stream_descriptor pipe;
  asio::system_timer timer;
  WatchdogTimers timers;
  std::vector<char> buffer = std::vector<char>(kReadBytes);
  bool said_dropped = false;
  // Expires with this object: a wait that completed before it was cancelled still calls its
  // handler.
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);

  std::weak_ptr<bool> Alive() const { return life; }

  void AwaitRequests() {
    pipe.async_wait(asio::posix::descriptor_base::wait_read,
                    [this, alive = Alive()](const asio::error_code& error) {
                      if (error || alive.expired()) return;
                      // Reads once per turn of the loop, so a worker that floods the pipe does not
                      // stop everything else.
                      const ssize_t n = ::read(pipe.native_handle(), buffer.data(), buffer.size());
                      if (n > 0) timers.Read({buffer.data(), static_cast<size_t>(n)}, StartTime);
                      if (timers.dropped() > 0 && !std::exchange(said_dropped, true)) {
                        LogWarning(absl::StrCat(
                            "a worker wrote to the watchdog's pipe what is no timer, or one of "
                            "more than ",
                            WatchdogTimers::kMaxTimers, "; dropped"));
                      }
                      Arm();
                      AwaitRequests();
                    });
  }

  void Arm() {
    const std::optional<WallSeconds> next = timers.Next();
    if (!next) {
      timer.cancel();
      return;
    }
    const WallSeconds left = std::clamp(*next - WallNow(), 0.0, kLongWait);
    timer.expires_after(std::chrono::duration_cast<std::chrono::system_clock::duration>(
        std::chrono::duration<WallSeconds>(left)));
    timer.async_wait([this, alive = Alive()](const asio::error_code& error) {
      if (error || alive.expired()) return;
      EndExpired();
      Arm();
    });
  }

  void EndExpired() {
    const std::vector<WatchdogTimer> expired = timers.TakeExpired(WallNow());
    if (expired.empty()) return;
    const std::vector<ProcessEntry> ours = Descendants(::getpid());
    for (const WatchdogTimer& late : expired) End(late, ours);
  }

  void End(const WatchdogTimer& late, const std::vector<ProcessEntry>& ours) {
    const auto is = [&](pid_t pid) {
      return std::find_if(ours.begin(), ours.end(),
                          [pid](const ProcessEntry& entry) { return entry.pid == pid; });
    };
    auto process = is(late.pid);
    if (process == ours.end() || process->start_time != late.start_time)
      return;  // The process has ended or is not ours.
    const std::string what = absl::StrCat(process->command, "[", late.pid, "]: its timer '",
                                          Shown(late.scope), "' has expired");
    if (late.signal == 0) {
      LogWarning(absl::StrCat("the watchdog leaves ", what, ", but it names no signal"));
      return;
    }
    if (!SignalProcess(*process, late.signal)) return;
    const std::string reason =
        absl::StrCat("the watchdog sent ", SignalName(late.signal), " to ", what);
    LogWarning(reason);
    // Follows the parents up to our own child. The table is not a snapshot, hence the limit of
    // steps.
    for (size_t steps = 0; process != ours.end() && steps < ours.size(); ++steps) {
      if (process->parent == ::getpid()) return on_kill(process->pid, reason);
      process = is(process->parent);
    }
  }
};

bool Watchdog::IsWanted(const WorkerSpec& spec) { return Inherited(spec, kEnvEnableTimer) == "1"; }

absl::StatusOr<std::unique_ptr<Watchdog>> Watchdog::Open(asio::io_context& loop,
                                                         const WorkerSpec& spec, OnKill on_kill) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string path, PipeName(spec));
  if (::mkfifo(path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make the watchdog's pipe ", path, ": ",
                                                     Errno(), "; set ", kEnvTimerFile,
                                                     " or TMPDIR"));
  }
  std::unique_ptr<Watchdog> watchdog(
      new Watchdog(std::make_unique<State>(loop, path, std::move(on_kill))));
  // Opened for writing as well, so that the pipe does not reach its end when the last worker closes
  // it.
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot open the watchdog's pipe ", path, ": ", Errno()));
  }
  watchdog->state_->pipe.assign(fd.Release());
  watchdog->state_->AwaitRequests();
  return watchdog;
}

Watchdog::Watchdog(std::unique_ptr<State> state) : state_(std::move(state)) {}

Watchdog::~Watchdog() { ::unlink(state_->path.c_str()); }

const std::string& Watchdog::path() const { return state_->path; }

}  // namespace hlaunch
