// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/stall_watch.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "agent/watch/stall/heartbeat_server.h"
#include "agent/watch/stall/judge_stalls.h"
#include "agent/watch/stall/stack_dump.h"
#include "agent/watch/stall/stack_text.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

constexpr size_t kMostNamed = 5;
constexpr size_t kMostProcesses = 8;  // Of one worker; their stacks are collected.
constexpr size_t kFramesShown = 4;
constexpr size_t kFramesReported = 6;
constexpr Duration kDumpLimit = std::chrono::seconds(15);  // For one worker.
constexpr Duration kCaseLimit = std::chrono::seconds(30);  // For all workers that stall together.
std::string Joined(absl::Span<const std::string> lines, size_t most, const char* separator) {
  return absl::StrJoin(lines.subspan(0, std::min(most, lines.size())), separator);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

}  // namespace

struct StallWatch::State {
  State(asio::io_context& the_loop, const WorkerSpec& spec, Rank the_first_rank,
        StackFiles the_files, Events the_events)
      : loop(the_loop),
        first_rank(the_first_rank),
        pardons(spec.stall_action == StallAction::kWarn),
        tools(DirectoryOf(spec.argv[0])),
        log(std::move(the_files)),
        events(std::move(the_events)),
        unheard(the_loop),
        judgement(the_loop),
        pids(static_cast<size_t>(spec.nproc)) {}

  asio::io_context& loop;
  const Rank first_rank;
  // If set, a worker that continues is left alone. Otherwise that comes too late: the limit has
  // passed, and the signal that asks for stacks may be what made the worker continue.
  const bool pardons;
  const std::string tools;  // Folder of the workers' program; py-spy may be next to its Python.
  StackLog log;
  const Events events;
  std::unique_ptr<HeartbeatServer> server;
  asio::steady_timer unheard;  // Until unwatched workers are named.
  asio::steady_timer judgement;
  std::vector<pid_t> pids;       // By local rank; 0 if the worker does not live.
  std::optional<Instant> since;  // Time of the first stall of the open case.
  std::deque<Stall> waiting;     // Workers whose stacks are not collected yet.
  std::optional<StackDump> dump;
  std::vector<StallFinding> findings;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.

  std::weak_ptr<bool> Alive() const { return life; }
  std::string Name(int local_rank) const { return absl::StrCat("rank ", first_rank + local_rank); }

  void TellUnwatched() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < pids.size(); ++i) {
      const int local_rank = static_cast<int>(i);
      if (pids[i] != 0 && !server->heartbeats().IsWatched(local_rank)) {
        names.push_back(Name(local_rank));
      }
    }
    if (names.empty()) return;
    LogInfo(absl::StrCat(
        "no heartbeat has come from ", Joined(names, kMostNamed, ", "),
        names.size() > kMostNamed ? absl::StrCat(" and ", names.size() - kMostNamed, " more") : "",
        ": not watched until the script calls hlaunch.heartbeat()"));
  }

  void OnStalls(const std::vector<Stall>& stalls) {
    for (const Stall& stall : stalls) {
      LogWarning(absl::StrCat(Name(stall.worker), " has stalled: ", stall.ToString()));
      waiting.push_back(stall);
    }
    if (!since) {
      since = MonotonicClock().Now();
      JudgeAt(*since + kStallSettle);
    }
    Collect();
  }

  void OnRecovery(int local_rank) const {
    if (pardons || !since) LogInfo(absl::StrCat(Name(local_rank), " goes on"));
  }

  // True if the worker is not judged: it has ended, or it continues and is pardoned.
  bool IsExcused(int local_rank) const {
    return pids[static_cast<size_t>(local_rank)] == 0 ||
           (pardons && !server->heartbeats().HasStalled(local_rank));
  }

  // First the process that sends the heartbeats, then the worker itself, then its descendants.
  // Requires: the worker lives.
  std::vector<StackTarget> TargetsOf(int local_rank) const {
    const pid_t worker = pids[static_cast<size_t>(local_rank)];
    const pid_t sender = server->sender(local_rank);
    const Heartbeat& last = server->heartbeats().Last(local_rank);
    std::vector<StackTarget> targets;
    for (const pid_t pid : {sender, worker}) {
      const auto process = ReadProcess(pid);
      if (!process || (!targets.empty() && pid == sender)) continue;
      targets.push_back({*process});
      if (pid == sender && !pardons) {  // A signal may disturb a worker that is to continue.
        targets.back().stack_signal = last.stack_signal;
        targets.back().stack_fd = last.stack_fd;
      }
    }
    for (const ProcessEntry& process : Descendants(worker)) {
      if (targets.size() == kMostProcesses) break;
      if (process.pid != sender && process.state != 'Z') targets.push_back({process});
    }
    return targets;
  }

  void Collect() {
    while (!dump && !waiting.empty()) {
      const Stall stall = waiting.front();
      waiting.pop_front();
      const Duration left = *since + kCaseLimit - MonotonicClock().Now();
      if (IsExcused(stall.worker)) continue;
      if (left <= Duration::zero()) {
        findings.push_back({stall, {}});
        continue;
      }
      dump.emplace(
          loop, TargetsOf(stall.worker), tools, std::min(left, kDumpLimit),
          [this, stall](const std::vector<ProcessStacks>& found) { OnDump(stall, found); });
    }
  }

  void OnDump(const Stall& stall, const std::vector<ProcessStacks>& found) {
    StallFinding finding{stall, {}};
    std::string all =
        absl::StrCat(WallTime(WallMillis()), " ", Name(stall.worker), ": ", stall.ToString(), "\n");
    for (const ProcessStacks& one : found) {
      absl::StrAppend(&all, "\n", one.process, "\n",
                      one.text.empty() ? absl::StrCat("no stacks: ", one.problem) : one.text, "\n");
      if (finding.summary.frames.empty()) finding.summary = SummarizeStacks(one.text);
    }
    const std::string path = log.Keep(stall.worker, std::move(all));
    const std::vector<std::string>& frames = finding.summary.frames;
    if (!frames.empty()) {
      LogWarning(absl::StrCat(Name(stall.worker), " stands in ",
                              Joined(frames, kFramesShown, " < "),
                              path.empty() ? "; --log-dir keeps all stacks"
                                           : absl::StrCat("; all stacks are in ", path)));
    } else if (!found.empty()) {
      LogWarning(absl::StrCat("no stacks of ", Name(stall.worker), ", ", found[0].process, ": ",
                              found[0].problem));
    }
    findings.push_back(std::move(finding));
    dump.reset();
    Collect();
    Judge();
  }

  void JudgeAt(Instant when) {
    judgement.expires_at(when);
    judgement.async_wait([this, alive = Alive()](const asio::error_code& error) {
      if (!error && !alive.expired()) Judge();
    });
  }

  // Judges the case once all stacks are collected.
  void Judge() {
    if (!since || dump || !waiting.empty()) return;
    findings.erase(std::remove_if(findings.begin(), findings.end(),
                                  [this](const StallFinding& finding) {
                                    return IsExcused(finding.stall.worker);
                                  }),
                   findings.end());
    const StallVerdict verdict = JudgeStalls(findings, *since, MonotonicClock().Now());
    if (verdict.wait_until) return JudgeAt(*verdict.wait_until);
    const std::vector<StallFinding> judged = std::exchange(findings, {});
    since.reset();
    if (verdict.cause) Tell(judged[*verdict.cause], verdict.cause_waits);
  }

  void Tell(const StallFinding& cause, bool waits) {
    const StackSummary& summary = cause.summary;
    events.on_stall(
        {cause.stall.worker, waits ? FailureKind::kStalledWaiting : FailureKind::kStalled,
         absl::StrCat(
             "stalled: ", cause.stall.ToString(),
             waits ? absl::StrCat(" while it waits for other workers in ", summary.waits_in) : ""),
         summary.traceback, Joined(summary.frames, kFramesReported, "\n")});
  }
};

absl::StatusOr<std::unique_ptr<StallWatch>> StallWatch::Open(asio::io_context& loop,
                                                             const WorkerSpec& spec,
                                                             Rank first_rank, StackFiles files,
                                                             Events events) {
  std::unique_ptr<StallWatch> watch(new StallWatch(
      std::make_unique<State>(loop, spec, first_rank, std::move(files), std::move(events))));
  State& s = *watch->state_;
  HLAUNCH_ASSIGN_OR_RETURN(
      s.server,
      HeartbeatServer::Open(loop, spec.nproc, spec.heartbeat_timeout,
                            {[&s](const std::vector<Stall>& stalls) { s.OnStalls(stalls); },
                             [&s](int local_rank) { s.OnRecovery(local_rank); },
                             [&s](int64_t step) { s.events.on_step(step); },
                             [&s](int local_rank) { s.events.on_boundary(local_rank); }}));
  if (spec.heartbeat_timeout == Duration::zero()) return watch;
  s.unheard.expires_after(spec.heartbeat_timeout);
  s.unheard.async_wait([&s, alive = s.Alive()](const asio::error_code& error) {
    if (!error && !alive.expired()) s.TellUnwatched();
  });
  return watch;
}

StallWatch::StallWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
StallWatch::~StallWatch() = default;

const std::string& StallWatch::address(int local_rank) const {
  return state_->server->address(local_rank);
}

void StallWatch::Started(int local_rank, pid_t pid) {
  state_->pids[static_cast<size_t>(local_rank)] = pid;
  state_->server->Listen(local_rank, pid);
}

void StallWatch::Ended(int local_rank) {
  state_->pids[static_cast<size_t>(local_rank)] = 0;
  state_->server->Forget(local_rank);
}

pid_t StallWatch::tool() const { return state_->dump ? state_->dump->tool() : 0; }

}  // namespace hlaunch
