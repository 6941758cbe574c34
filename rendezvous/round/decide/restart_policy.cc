// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/restart_policy.h"

#include <algorithm>
#include <cstring>
#include <ratio>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/decide/exit_set.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

constexpr Duration kFirstFreePause = std::chrono::seconds(1);

// A failed job never exits with 0, whatever came over the wire.
int FailureCode(int code, int otherwise) { return code > 0 && code < 256 ? code : otherwise; }

int ExitCodeOf(const FailureEvent& event) {
  switch (event.kind) {
    case FailureEvent::Kind::kWorkerFailed:
      if (event.worker.signal > 0) return FailureCode(kExitSignalBase + event.worker.signal, 1);
      return FailureCode(event.worker.exit_code, 1);
    case FailureEvent::Kind::kNodeLost:
      return kExitNodeLost;
    case FailureEvent::Kind::kNodeLeft:
      if (IsSignalExit(event.left_exit_code)) return kExitNodeStopped;
      return FailureCode(event.left_exit_code, kExitNodeLost);
  }
  return kExitInternal;
}

// "; rank 1 on node0 and rank 6 on node3 did not fail": what the first did stands for all.
std::string DescribeAwaited(const std::vector<WorkerPlace>& awaited) {
  if (awaited.empty()) return "";
  std::vector<std::string> names;
  for (const WorkerPlace& place : awaited) {
    names.push_back(absl::StrCat("rank ", place.rank, " on ", place.host));
  }
  const std::string& did = awaited.front().did;
  return absl::StrCat("; ", absl::StrJoin(names, " and "), " ", did.empty() ? "did not fail" : did);
}

// "ranks 2-3", "rank 2".
std::string RanksOf(const FailureEvent& event) {
  if (event.nproc == 1) return absl::StrCat("rank ", event.first_rank);
  return absl::StrCat("ranks ", event.first_rank, "-", event.first_rank + event.nproc - 1);
}

std::string DescribeLoss(const FailureEvent& event) {
  const bool known = !IsLoopback(event.address);
  std::string text = absl::StrCat(event.host, known ? absl::StrCat(" (", event.address, ")") : "",
                                  " was lost: ", event.detail);
  if (event.nproc > 0) absl::StrAppend(&text, "; it ran ", RanksOf(event));
  if (!event.explains) return text;
  const std::string exception = ExceptionOf(*event.explains);
  return absl::StrCat(text, "; rank ", event.explains->rank, " on ", event.explains->host,
                      " failed of it", exception.empty() ? "" : ": ", exception);
}

FailureTraits TraitsOf(const FailureEvent& event) {
  const bool worker = event.kind == FailureEvent::Kind::kWorkerFailed;
  FailureTraits traits;
  traits.exit_code = ExitCodeOf(event);
  if (worker) traits.signal = event.worker.signal;
  traits.node = !worker;
  traits.hang = worker && event.worker.hung;
  traits.oom = worker && event.worker.out_of_memory;
  return traits;
}

// `text` was checked with CheckRestartPolicy when the policy was accepted.
ExitSet SetOf(absl::string_view text) { return ExitSet::Parse(text).value_or(ExitSet()); }

absl::StatusOr<ExitSet> Named(absl::string_view option, absl::string_view text) {
  absl::StatusOr<ExitSet> set = ExitSet::Parse(text);
  if (set.ok()) return set;
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", set.status().message()));
}

bool Counts(const JobPolicy& policy, Instant at, Instant now) {
  return policy.restart_window == Duration::zero() || now - at < policy.restart_window;
}

// "24 h", "5 min", "1.5 s".
std::string TimeText(Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (time >= std::chrono::hours(1) && time % std::chrono::hours(1) == Duration::zero()) {
    return absl::StrCat(seconds / 3600, " h");
  }
  if (time >= std::chrono::minutes(1) && time % std::chrono::minutes(1) == Duration::zero()) {
    return absl::StrCat(seconds / 60, " min");
  }
  return absl::StrCat(seconds, " s");
}

Duration RoundedUp(Duration left) {
  if (left > std::chrono::seconds(1)) return std::chrono::ceil<std::chrono::seconds>(left);
  return std::chrono::ceil<std::chrono::duration<int64_t, std::deci>>(left);
}

std::string Within(const JobPolicy& policy) {
  if (policy.restart_window == Duration::zero()) return "";
  return absl::StrCat(" within ", TimeText(policy.restart_window));
}

// "restart 2 of 3 within 24 h"
std::string NumberOf(const JobPolicy& policy, size_t number) {
  return absl::StrCat("restart ", number, " of ", policy.max_restarts, Within(policy));
}

std::string RestartsUsed(const JobPolicy& policy) {
  return absl::StrCat(policy.max_restarts,
                      policy.max_restarts == 1 ? " restart was used" : " restarts were used",
                      Within(policy));
}

std::string NameOfRestart(const JobPolicy& policy, const RestartLog& log) {
  return log.free ? "a restart that is not charged" : NumberOf(policy, log.charged.size());
}

const char* WhyPause(const JobPolicy& policy) {
  return policy.restart_pause > Duration::zero() ? "--restart-pause"
                                                 : "restarts follow each other soon";
}

// Returns `first`, doubled for each of the `before` restarts in a row. Free restarts have a pause
// of their own if the user gave none.
Duration PauseAfter(Duration first, bool free, int before) {
  if (first == Duration::zero()) {
    if (!free || before == 0) return first;
    first = kFirstFreePause;
    --before;
  }
  const Duration most = std::max(first, kLongestPause);
  Duration pause = first;
  for (; before > 0 && pause < most; --before) pause *= 2;
  return std::min(pause, most);
}

}  // namespace

FailureEvent NodeEvent(FailureEvent::Kind kind, const NodeInfo& info, absl::string_view detail,
                       int left_exit_code) {
  FailureEvent event;
  event.kind = kind;
  event.host = info.host;
  event.address = info.address;
  event.detail = std::string(detail);
  event.left_exit_code = left_exit_code;
  return event;
}

std::string DescribeEvent(const FailureEvent& event) {
  switch (event.kind) {
    case FailureEvent::Kind::kWorkerFailed:
      return absl::StrCat(DescribeFailure(event.worker), DescribeAwaited(event.awaited));
    case FailureEvent::Kind::kNodeLost:
      return DescribeLoss(event);
    case FailureEvent::Kind::kNodeLeft:
      return absl::StrCat(
          event.host,
          IsSignalExit(event.left_exit_code) ? " was stopped by " : " left: ", event.detail);
  }
  return "";
}

std::string DescribeFailure(const WorkerFailure& failure) {
  std::string text = absl::StrCat(
      failure.spawned.empty() ? "worker " : absl::StrCat(failure.spawned, ", spawned by "), "rank ",
      failure.rank, " on ", failure.host, " (pid ", failure.pid, ") ");
  if (failure.signal == 0) {
    absl::StrAppend(&text, "exited with ", failure.exit_code);
  } else {
    const char* name = sigabbrev_np(failure.signal);
    absl::StrAppend(&text, "was killed by signal ", failure.signal);
    if (name != nullptr) absl::StrAppend(&text, " (SIG", name, ")");
  }
  const std::string exception = ExceptionOf(failure);
  return exception.empty() ? text : absl::StrCat(text, ": ", exception);
}

JobVerdict AfterFailure(const JobPolicy& policy, const RestartLog& log, const FailureEvent& event,
                        Instant now) {
  JobVerdict verdict;
  verdict.exit_code = ExitCodeOf(event);
  verdict.reason = DescribeEvent(event);
  if (event.kind == FailureEvent::Kind::kWorkerFailed && event.worker.no_restart) return verdict;
  const FailureTraits traits = TraitsOf(event);
  const auto add = [&](const auto&... words) {
    absl::StrAppend(&verdict.reason, "; ", words...);
    return verdict;
  };
  const std::string ends = SetOf(policy.end_on).WordOf(traits);
  if (!ends.empty()) return add(ends, " is in --end-on");
  if (traits.node && policy.on_loss == OnLoss::kFail) {
    return add("the job ends for that (--on-loss fail)");
  }
  const std::string free = SetOf(policy.free_on).WordOf(traits);
  const ExitSet only = SetOf(policy.restart_on);
  if (free.empty() && !only.empty() && only.WordOf(traits).empty()) {
    return add(NameOf(traits), " is not in --restart-on");
  }
  const int used = CountedRestarts(policy, log, now);
  if (free.empty() && used >= policy.max_restarts) {
    if (policy.max_restarts > 0) add(RestartsUsed(policy));
    return verdict;
  }
  verdict.restart = true;
  verdict.free = !free.empty();
  const int before = now - log.ran_since < kLongRun ? log.in_a_row : 0;
  verdict.in_a_row = before + 1;
  verdict.pause = PauseAfter(policy.restart_pause, verdict.free, before);
  if (verdict.free) return add("not charged: ", free, " is in --free-on");
  return add(NumberOf(policy, used + 1));
}

void TakeRestart(const JobPolicy& policy, const JobVerdict& verdict, Instant now, RestartLog& log) {
  std::erase_if(log.charged, [&](Instant at) { return !Counts(policy, at, now); });
  if (!verdict.free) log.charged.push_back(now);
  log.free = verdict.free;
  log.pause = verdict.pause;
  log.in_a_row = verdict.in_a_row;
}

void TakeBack(RestartLog& log) {
  if (!log.free && !log.charged.empty()) log.charged.pop_back();  // A restored record may be odd.
  log.pause = Duration::zero();
}

int CountedRestarts(const JobPolicy& policy, const RestartLog& log, Instant now) {
  return static_cast<int>(std::count_if(log.charged.begin(), log.charged.end(),
                                        [&](Instant at) { return Counts(policy, at, now); }));
}

std::string DescribePause(const JobPolicy& policy, const RestartLog& log, Duration left) {
  return absl::StrCat(NameOfRestart(policy, log), " begins in ",
                      TimeText(left < log.pause ? RoundedUp(left) : left), " (", WhyPause(policy),
                      ")");
}

std::string WaitForPause(const JobPolicy& policy, const RestartLog& log) {
  return absl::StrCat("waiting for the pause of ", TimeText(log.pause), " before ",
                      NameOfRestart(policy, log), " (", WhyPause(policy), ")");
}

absl::Status CheckRestartPolicy(const JobPolicy& policy) {
  HLAUNCH_ASSIGN_OR_RETURN(const ExitSet restart, Named("--restart-on", policy.restart_on));
  HLAUNCH_ASSIGN_OR_RETURN(const ExitSet end, Named("--end-on", policy.end_on));
  HLAUNCH_ASSIGN_OR_RETURN(const ExitSet free, Named("--free-on", policy.free_on));
  for (const auto& [name, set] : {std::pair("--free-on", &free), {"--restart-on", &restart}}) {
    if (set->empty() || end.empty() || !end.Covers(*set)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " says nothing beside --end-on ", policy.end_on,
                     ", which names all of it: the job ends after that; leave one of them out"));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
