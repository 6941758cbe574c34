// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/restart_policy.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/first_cause.h"
#include "rendezvous/round/master_address.h"

namespace hlaunch {
namespace {

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

// "; rank 1 on node0 and rank 6 on node3 did not fail": the first's deed is that of all.
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

JobVerdict AfterFailure(const RestartBudget& budget, const FailureEvent& event) {
  const bool vain = event.kind == FailureEvent::Kind::kWorkerFailed && event.worker.no_restart;
  JobVerdict verdict{budget.used < budget.max_restarts && !vain, ExitCodeOf(event),
                     DescribeEvent(event)};
  if (vain) return verdict;
  if (verdict.restart) {
    absl::StrAppend(&verdict.reason, "; restart ", budget.used + 1, " of ", budget.max_restarts);
  } else if (budget.max_restarts > 0) {
    absl::StrAppend(&verdict.reason, "; ", budget.max_restarts,
                    budget.max_restarts == 1 ? " restart was" : " restarts were", " used");
  }
  return verdict;
}

}  // namespace hlaunch
