// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/conductor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/output/console.h"
#include "agent/workers/process/process.h"
#include "asio/post.hpp"
#include "launcher/remote/ssh/make_plan.h"
#include "launcher/remote/ssh/start_status.h"
#include "launcher/text/printable.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstStatus = seconds(2);
constexpr Duration kStatusOnTerminal = milliseconds(500);
constexpr Duration kStatusElsewhere = seconds(10);
// Time, beyond the workers' grace, for agents to end and for the news of it to arrive.
constexpr Duration kEndTime = seconds(12);
constexpr Duration kKillTime = seconds(2);
constexpr Duration kLookForRoom = seconds(1);
constexpr Duration kLookAtJob = milliseconds(50);
constexpr Duration kFlushTime = seconds(10);
constexpr size_t kMaxInputInFlight = 256 << 10;  // Bytes of stdin on the way to node rank 0.

bool IsEnding(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

// Whether our stdout and stderr are one terminal, pipe or file.
bool AreOnePlace() {
  struct stat out = {}, err = {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 &&
         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

}  // namespace

Conductor::Conductor(ConductPlan plan, UniqueFd signals, int keeper_fd)
    : plan_(std::move(plan)),
      patience_(plan_.patience, MonotonicClock().Now()),
      signals_fd_(std::move(signals)),
      signals_(loop_),
      keeper_(loop_),
      status_timer_(loop_),
      kill_timer_(loop_),
      job_timer_(loop_),
      room_timer_(loop_),
      terminal_(ConsoleStyleOf(STDERR_FILENO).terminal),
      one_place_(AreOnePlace()) {
  signals_.assign(::fcntl(signals_fd_.get(), F_DUPFD_CLOEXEC, 0));
  keeper_.assign(::fcntl(keeper_fd, F_DUPFD_CLOEXEC, 0));
}

Conductor::~Conductor() = default;

absl::StatusOr<JobEnd> Conductor::Run() {
  HLAUNCH_ASSIGN_OR_RETURN(sink_, OutputSink::Make(loop_));
  HostStart::Events events;
  events.changed = [this](HostStart& host) { Changed(host); };
  events.output = [this](HostStart& host, int fd, std::string bytes) {
    Output(host, fd, std::move(bytes));
  };
  events.output_full = [this] { return sink_->writer().full(); };
  events.sent = [this](HostStart& host) {
    if (stdin_ != nullptr && host.plan().message.takes_stdin) stdin_->Go();
  };
  for (const HostPlan& host : plan_.hosts) {
    hosts_.push_back(std::make_shared<HostStart>(loop_, plan_.starter, patience_, host, events));
  }
  AwaitSignals();
  AwaitKeeper();
  status_timer_.expires_after(kFirstStatus);
  ArmStatus();
  StartMore();
  loop_.run();
  EraseStatus();
  sink_->writer().WaitEmpty(MonotonicClock().Now() + kFlushTime);
  return End();
}

size_t Conductor::Count(HostState state) const {
  return static_cast<size_t>(std::count_if(
      hosts_.begin(), hosts_.end(), [state](const auto& host) { return host->state() == state; }));
}

void Conductor::StartMore() {
  if (stopping_) return;
  std::vector<Instant> begun;
  for (const auto& host : hosts_) {
    const bool on_the_way =
        host->state() == HostState::kConnecting || host->state() == HostState::kStarted;
    if (on_the_way) begun.push_back(host->begun());
  }
  const auto cpus = static_cast<int>(std::thread::hardware_concurrency());
  size_t room = RoomForStarts(begun, cpus, MonotonicClock().Now());
  for (const auto& host : hosts_) {
    if (room == 0) break;
    if (host->state() != HostState::kWaiting || !MayStart(*host)) continue;
    host->Start();
    --room;
  }
  if (Count(HostState::kWaiting) == 0) return;
  room_timer_.expires_after(kLookForRoom);
  room_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) StartMore();
  });
}

bool Conductor::MayStart(const HostStart& host) const {
  const std::string& jump = host.plan().jump;
  if (jump.empty()) return true;
  const auto on_the_way = std::count_if(hosts_.begin(), hosts_.end(), [&jump](const auto& other) {
    return other->state() == HostState::kConnecting && other->plan().jump == jump;
  });
  return static_cast<size_t>(on_the_way) < kInFlightOfJump;
}

void Conductor::Changed(HostStart& host) {
  if (host.state() == HostState::kFailed) HostFailed(host);
  if (host.state() == HostState::kEnded) HostEnded(host);
  if (host.state() == HostState::kStarted) RefuseOneMachineTwice();
  if (host.over()) TellEnded();
  if (host.state() == HostState::kHere) {
    LogDebug(absl::StrCat(host.plan().host.Login(), " reaches this host at ", host.reached()));
    if (host.plan().message.takes_stdin) ReadStdin();
  }
  if (Over()) return loop_.stop();
  const bool awaited = std::any_of(hosts_.begin(), hosts_.end(), [](const auto& each) {
    return !each->over() && each->state() != HostState::kHere;
  });
  if (!awaited && !starting_over_) {
    starting_over_ = true;
    if (!last_status_.empty() && !stopping_) {
      EraseStatus();
      LogInfo(StatusText());
    }
    if (plan_.detached.has_value()) AwaitFormed();
  }
  // Handlers of this host may still be on the stack.
  if (!stopping_) asio::post(loop_, [this] { StartMore(); });
}

bool Conductor::Over() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& each) { return each->over(); }) &&
         (!cut_ || gave_up_ || plan_.detached->over());
}

void Conductor::AwaitFormed() {
  if (stopping_) return;
  if (!plan_.detached->formed()) {
    job_timer_.expires_after(kLookAtJob);
    return job_timer_.async_wait([this](const asio::error_code& error) {
      if (!error) AwaitFormed();
    });
  }
  detached_ = plan_.detached->meets;
  for (const auto& host : hosts_) {
    if (detached_ && host->state() == HostState::kHere) host->Send(FrameKind::kDetach, "");
  }
  plan_.detached->started();
}

// Polls for the end of the job, because a broken connection cannot report it.
void Conductor::AwaitOver() {
  if (Over()) return loop_.stop();
  job_timer_.expires_after(kLookAtJob);
  job_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) AwaitOver();
  });
}

void Conductor::HostFailed(HostStart& host) {
  if (host.stopped()) return;  // We stopped it.
  const StartVerdict& verdict = host.verdict();
  const std::string line = absl::StrCat(host.plan().host.Login(), ": ", verdict.cause,
                                        verdict.way_out.empty() ? "" : "; ", verdict.way_out);
  EraseStatus();
  const size_t left = hosts_.size() - Count(HostState::kFailed);
  if (left >= static_cast<size_t>(plan_.min_hosts)) {
    return LogWarning(absl::StrCat("cannot start on ", line, "; the job goes on without it"));
  }
  LogError(absl::StrCat("cannot start on ", line));
  start_failed_ = true;
  Stop(SIGTERM);
}

void Conductor::RefuseOneMachineTwice() {
  if (stopping_) return;
  std::vector<TargetHost> names;
  std::vector<std::string> machines;
  for (const auto& host : hosts_) {
    names.push_back(host->plan().host);
    machines.push_back(host->over() ? "" : host->machine());
  }
  const std::string twice = OneMachineTwice(names, machines);
  if (twice.empty()) return;
  EraseStatus();
  // Another starter may give these names another meaning.
  if (!plan_.starter.agent.empty()) {
    if (!std::exchange(told_twice_, true)) LogWarning(twice);
    return;
  }
  LogError(twice);
  start_failed_ = true;
  Stop(SIGTERM);
}

void Conductor::HostEnded(HostStart& host) {
  if (!host.exit_code().has_value()) {
    if (!stopping_) ConnectionBroke(host);
  } else if (GoesOn(host)) {
    left_.insert(&host);
  } else {
    StopStarts();
    KillLater(plan_.grace + kEndTime);  // The other hosts get this time to hear of the end.
  }
}

// The job is over, so it needs no host that has not come yet.
void Conductor::StopStarts() {
  // Posted, because a host's own event handler is on the stack.
  asio::post(loop_, [this] {
    for (const auto& host : hosts_) {
      if (host->state() != HostState::kHere) host->Stop(SIGTERM);
    }
  });
}

// The node of a broken connection may live on in a detached job.
void Conductor::TellEnded() {
  if (plan_.ended == nullptr) return;
  plan_.ended(static_cast<int>(std::count_if(hosts_.begin(), hosts_.end(), [](const auto& host) {
    return host->state() == HostState::kFailed || host->exit_code().has_value();
  })));
}

// Whether the job goes on after this host's agent ended.
bool Conductor::GoesOn(const HostStart& host) const {
  if (stopping_) return false;
  if (detached_) return !plan_.detached->over();
  const auto living =
      std::count_if(hosts_.begin(), hosts_.end(), [](const auto& each) { return !each->over(); });
  return GoesOnWithout(*host.exit_code(), static_cast<int>(living), plan_.min_hosts);
}

void Conductor::ConnectionBroke(HostStart& host) {
  EraseStatus();
  const std::string last = PrintableLine(host.last_words());
  LogWarning(absl::StrCat("the connection to ", host.plan().host.Login(), " broke",
                          last.empty() ? "" : ": ", last,
                          detached_ ? "; its workers go on, and what they say from now on is not "
                                      "seen here"
                                    : "; its workers are ended there"));
  if (!detached_ || std::exchange(cut_, true)) return;
  // Posted, because a host's own event handler is on the stack.
  asio::post(loop_, [this] { AwaitOver(); });
}

void Conductor::Output(HostStart& from, int fd, std::string bytes) {
  if (terminal_) EraseStatus();
  const int place = one_place_ ? STDOUT_FILENO : fd;
  if (const auto found = unfinished_.find(place); found != unfinished_.end()) {
    const Unfinished last = found->second;
    unfinished_.erase(found);
    if (last.host != &from || last.fd != fd) {
      last.host->ShowAgain(last.fd);
      bytes.insert(0, "\n");
    }
  }
  if (bytes.back() != '\n') unfinished_[place] = {&from, fd};
  sink_->writer().Push(fd, std::move(bytes));
  if (!sink_->writer().full() || awaits_room_) return;
  awaits_room_ = true;
  sink_->AwaitRoom([this] {
    awaits_room_ = false;
    for (const auto& host : hosts_) host->Resume();
  });
}

void Conductor::AwaitSignals() {
  signals_.async_wait(asio::posix::descriptor_base::wait_read,
                      [this](const asio::error_code& error) {
                        if (error) return;
                        TakeSignals();
                        AwaitSignals();
                      });
}

void Conductor::TakeSignals() {
  signalfd_siginfo info;
  while (::read(signals_fd_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (!IsEnding(signal)) {  // The signal is for the workers.
      for (const auto& host : hosts_) {
        if (host->state() != HostState::kHere) continue;
        host->Send(FrameKind::kSignal, std::string(1, static_cast<char>(signal)));
      }
      continue;
    }
    EraseStatus();
    if (++signals_taken_ > 1) {
      LogWarning("asked twice: killing what is left");
      for (const auto& host : hosts_) host->Send(FrameKind::kKill, "");
      KillLater(kKillTime);
      continue;
    }
    stop_signal_ = signal;
    LogWarning(
        absl::StrCat(SignalName(signal), ": stopping the job on all hosts; once more kills it"));
    Stop(signal);
  }
}

void Conductor::AwaitKeeper() {
  keeper_.async_wait(asio::posix::descriptor_base::wait_read,
                     [this](const asio::error_code& error) {
                       if (error) return;
                       EraseStatus();
                       LogError("the keeper was killed: stopping the job on all hosts");
                       stop_signal_ = SIGKILL;
                       Stop(SIGTERM);
                     });
}

void Conductor::ReadStdin() {
  if (stdin_ != nullptr) return;
  stdin_ = std::make_unique<StdinReader>(loop_, [this](std::string bytes) {
    for (const auto& host : hosts_) {
      if (!host->plan().message.takes_stdin) continue;
      host->Send(FrameKind::kInput, bytes);
      return host->waiting() < kMaxInputInFlight;
    }
    return false;
  });
  stdin_->Go();
}

void Conductor::Stop(int signal) {
  stopping_ = true;
  // Posted, because a host's own event handler may be on the stack.
  asio::post(loop_, [this, signal] {
    for (const auto& host : hosts_) host->Stop(signal);
    if (cut_) plan_.detached->end_job(signal);
  });
  KillLater(plan_.grace + kEndTime);
}

void Conductor::KillLater(Duration wait) {
  const auto at = std::chrono::steady_clock::now() + wait;
  const bool armed = kill_timer_.expiry() > std::chrono::steady_clock::now();
  if (armed && kill_timer_.expiry() <= at) return;
  kill_timer_.expires_at(at);
  kill_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) KillAll();
  });
}

void Conductor::KillAll() {
  gave_up_ = true;
  for (const auto& host : hosts_) {
    if (!host->over()) host->Kill();
  }
}

std::string Conductor::StatusText() const {
  std::vector<HostProgress> progress;
  for (const auto& host : hosts_) {
    const bool own = host->plan().own && plan_.starter.agent.empty();
    progress.push_back(
        {host->plan().host.Login(), host->state(), own ? "hlaunch" : plan_.starter.Name()});
  }
  return StartStatus(progress, {MonotonicClock().Now() - patience_.progress(), patience_.limit()});
}

void Conductor::ArmStatus() {
  status_timer_.async_wait([this](const asio::error_code& error) {
    if (error || starting_over_ || stopping_) return;
    ShowStatus();
    status_timer_.expires_after(terminal_ ? kStatusOnTerminal : kStatusElsewhere);
    ArmStatus();
  });
}

void Conductor::ShowStatus() {
  if (plan_.quiet) return;
  const std::string text = StatusText();
  if (terminal_ && status_shown_ && text == last_status_) return;
  last_status_ = text;
  if (!terminal_) return LogInfo(last_status_);
  sink_->writer().Push(STDERR_FILENO, absl::StrCat("\r\033[Khlaunch: ", last_status_));
  status_shown_ = true;
}

void Conductor::EraseStatus() {
  if (!std::exchange(status_shown_, false)) return;
  sink_->writer().Push(STDERR_FILENO, "\r\033[K");
  sink_->writer().WaitEmpty(MonotonicClock().Now() + kStatusOnTerminal);
}

JobEnd Conductor::End() const {
  JobEnd end;
  end.start_failed = start_failed_;
  end.stop_signal = stop_signal_;
  for (const auto& host : hosts_) {
    const bool left = left_.contains(host.get());
    end.exit_codes.push_back(left ? std::nullopt : host->exit_code());
  }
  return end;
}

}  // namespace hlaunch
