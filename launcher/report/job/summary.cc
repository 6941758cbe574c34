// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/summary.h"

#include <string.h>  // sigabbrev_np

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/report/job/advice.h"
#include "launcher/report/job/complaint.h"
#include "launcher/text/printable.h"
#include "proto/base/terminal_text.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/cause/compare_places.h"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/cause/traceback.h"

namespace hlaunch {
namespace {

constexpr size_t kMostLines = 10;  // In a report without restarts.
constexpr size_t kEvidenceLines = 6;
constexpr size_t kLeastEvidence = 2;      // Even if the rest is long.
constexpr size_t kMessageLines = 3;       // After the first line.
constexpr size_t kTracebackLines = 1000;  // Read, not shown.
constexpr size_t kRestartsShown = 3;
constexpr size_t kNamedConsequences = 3;

// "SIGKILL"; the C library has no names for real-time signals.
std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : "real-time signal";
}

std::string HowItEnded(const WorkerFailure& failure) {
  if (failure.signal == 0) return absl::StrCat("exited with code ", failure.exit_code);
  return absl::StrCat("was killed by signal ", failure.signal, " (", SignalName(failure.signal),
                      ")");
}

// Returns whether the worker's process was started.
bool WasStarted(const WorkerFailure& failure) { return failure.pid != 0; }

bool WasStopped(const Outcome& outcome) {
  return IsSignalExit(outcome.exit_code) || outcome.exit_code == kExitNodeStopped;
}

// Returns in words what happened, if the rendezvous gave no reason.
std::string ReasonFor(int exit_code) {
  switch (exit_code) {
    case kExitBadEndpoint:
      return "the rendezvous could not be reached";
    case kExitPortInUse:
      return "the endpoint's port is in use";
    case kExitRefused:
      return "a node was refused";
    case kExitJoinTimeout:
      return "nodes did not come in time";
    case kExitRendezvousLost:
      return "the host of the rendezvous was not heard of any more";
    case kExitNodeLost:
      return "a node died or was cut off";
    case kExitNoProgress:
      return "restarts bring the job no further";
    case kExitTimeout:
      return "it took longer than --timeout";
    case kExitNodeStopped:
      return "another node was stopped";
    case kExitAgentLost:
      return "hlaunch itself was killed on a node";
    case kExitNoResources:
      return "a node ran out of processes, descriptors or memory";
    default:
      return IsSignalExit(exit_code)
                 ? absl::StrCat(SignalName(exit_code - kExitSignalBase), " was received")
                 : absl::StrCat("exit code ", exit_code);
  }
}

std::string WhoFailed(const WorkerFailure& failure) {
  if (failure.spawned.empty()) return absl::StrCat("rank ", failure.rank);
  return absl::StrCat(PrintableLine(failure.spawned), ", which rank ", failure.rank,
                      " had spawned");
}

// "rank 1 (node0), rank 5 (node2)".
std::string Names(const std::vector<WorkerPlace>& places) {
  std::vector<std::string> names;
  for (const WorkerPlace& place : places) {
    names.push_back(absl::StrCat("rank ", place.rank, " (", PrintableLine(place.host), ")"));
  }
  return absl::StrJoin(names, ", ");
}

// "rank 1 (node0) exited with code 0 before the others were done".
std::string Deeds(const std::vector<WorkerPlace>& places) {
  std::vector<std::string> deeds;
  for (const WorkerPlace& place : places) {
    const std::string did = place.did.empty() ? "did not fail" : PrintableLine(place.did);
    deeds.push_back(absl::StrCat(Names({place}), " ", did));
  }
  return absl::StrCat(absl::StrJoin(deeds, ", "),
                      places.front().exited ? " before the others were done" : "");
}

std::string Header(const Outcome& outcome) {
  if (outcome.worker_failed) {
    const WorkerFailure& first = outcome.failures.front();
    std::string exception = WasStarted(first) ? PrintableLine(OwnWords(first)) : "";
    if (exception.empty()) {
      exception = PrintableLine(first.evidence);
    } else if (first.out_of_memory || first.kind == FailureKind::kWarnedBefore) {
      absl::StrAppend(&exception, ": ", PrintableLine(first.evidence));
    }
    if (!outcome.awaited.empty() && !outcome.awaited.front().did.empty()) {
      return absl::StrCat("job failed: ", Deeds(outcome.awaited), ": ", FailureLine(first),
                          exception.empty() ? "" : ": ", exception);
    }
    const bool waited = KindOf(first) == CauseKind::kTimedOut && !outcome.awaited.empty();
    return absl::StrCat(
        "job failed: ", waited ? absl::StrCat(Names(outcome.awaited), " did not come: ") : "",
        FailureLine(first), exception.empty() ? "" : ": ", exception);
  }
  const std::string reason = PrintableLine(outcome.reason);
  return absl::StrCat(WasStopped(outcome) ? "job stopped: " : "job failed: ",
                      reason.empty() ? ReasonFor(outcome.exit_code) : reason);
}

// Returns the most useful frames of the traceback in at most `room` lines, but at least one frame:
// the last frame in the user's own code, followed by the last two frames.
std::vector<std::string> Frames(absl::string_view traceback, size_t room) {
  std::vector<std::vector<std::string>> frames;
  for (const std::string& line : PrintableLines(traceback, kTracebackLines)) {
    const size_t mark = line.find_first_not_of(" ~^");
    if (mark == line.npos) continue;  // The line only marks a part of the line above.
    if (absl::StartsWith(line, "  File ")) {
      frames.push_back({line});
    } else if (!frames.empty() && frames.back().size() == 1 && line[0] == ' ') {
      frames.back().push_back(line);
    }
  }
  size_t own = frames.size();
  while (own > 0 && !IsOwnCode(frames[own - 1][0])) --own;
  std::vector<std::vector<std::string>> shown;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i + 1 == own || i + 2 >= frames.size()) shown.push_back(frames[i]);
  }
  std::stable_partition(shown.begin(), shown.end(),
                        [](const std::vector<std::string>& frame) { return IsOwnCode(frame[0]); });
  while (shown.size() > 1 && 2 * shown.size() > room) shown.erase(shown.begin() + 1);
  std::vector<std::string> lines;
  for (const auto& frame : shown) lines.insert(lines.end(), frame.begin(), frame.end());
  return lines;
}

// Returns where the exception came from, or else the end of stderr, in about `room` lines.
std::vector<std::string> Evidence(const WorkerFailure& failure, size_t room) {
  std::vector<std::string> lines;
  std::vector<std::string> more = MoreOfException(failure);
  if (more.size() > kMessageLines) {
    const size_t left = more.size() - (kMessageLines - 1);
    more.resize(kMessageLines - 1);
    more.push_back(absl::StrCat("… and ", left, " more lines"));
  }
  if (failure.kind == FailureKind::kKernelAssertion && !OwnWords(failure).empty()) {
    more.push_back(failure.evidence);
  }
  for (const std::string& line : more) lines.push_back(absl::StrCat("    ", PrintableLine(line)));
  const size_t taken = lines.size() + (failure.log_file.empty() ? 0 : 1);
  const size_t left = std::max(room, taken + kLeastEvidence) - taken;
  const std::vector<std::string> shown =
      failure.traceback.empty() ? PrintableLines(failure.log_tail, std::min(kEvidenceLines, left))
                                : Frames(failure.traceback, left);
  for (const std::string& line : shown) lines.push_back(absl::StrCat("    | ", line));
  if (!failure.log_file.empty()) {
    lines.push_back(absl::StrCat("  log: ", PrintableLine(failure.log_file), " on ",
                                 PrintableLine(failure.host)));
  }
  return lines;
}

// Appends one line for all failures from `first` on, if there are any.
void AppendConsequences(const Outcome& outcome, size_t first, std::vector<std::string>& lines) {
  const size_t total =
      std::max<size_t>(std::max(outcome.total_failures, 0), outcome.failures.size());
  if (total <= first) return;
  const size_t named_end = std::min(outcome.failures.size(), first + kNamedConsequences);
  std::vector<std::string> named;
  for (size_t i = first; i < named_end; ++i) {
    const WorkerFailure& failure = outcome.failures[i];
    named.push_back(absl::StrCat(WhoFailed(failure), " (", PrintableLine(failure.host), ") ",
                                 HowItEnded(failure)));
  }
  if (total > named_end) named.push_back(absl::StrCat("and ", total - named_end, " more"));
  lines.push_back(absl::StrCat(first == 0 ? "  workers that failed: " : "  consequences: ",
                               absl::StrJoin(named, ", ")));
}

void AppendExcluded(const Outcome& outcome, std::vector<std::string>& lines) {
  for (const std::string& one : outcome.excluded) {
    lines.push_back(absl::StrCat("  excluded: ", PrintableLine(one)));
  }
}

// Appends a line for each of the last restarts.
void AppendHistory(const Outcome& outcome, std::vector<std::string>& lines) {
  const size_t total = outcome.history.size();
  const size_t begin = total - std::min(total, kRestartsShown);
  if (begin > 0) lines.push_back(absl::StrCat("  before: ", begin, " more restarts"));
  for (size_t i = begin; i < total; ++i) {
    lines.push_back(absl::StrCat("  restart after round ", outcome.history[i].round, ": ",
                                 PrintableLine(outcome.history[i].reason)));
  }
}

}  // namespace

std::string FailureLine(const WorkerFailure& failure) {
  if (!WasStarted(failure)) {
    return absl::StrCat("rank ", failure.rank, " (", PrintableLine(failure.host),
                        ") was not started: ", PrintableLine(failure.message));
  }
  const std::string place =
      failure.spawned.empty() ? absl::StrCat("local rank ", failure.local_rank, ", ") : "";
  return absl::StrCat(WhoFailed(failure), " (", PrintableLine(failure.host), ", ", place, "pid ",
                      failure.pid, ") ", HowItEnded(failure));
}

std::string SummaryLine(const Outcome& outcome) {
  if (outcome.exit_code == kExitOk) return "";
  return absl::StrCat(Header(outcome), "; exit code ", outcome.exit_code);
}

namespace {

// "2 of 3 restarts used, 4 more do not count"
std::string RestartsUsed(const Outcome& outcome, int max_restarts) {
  const int more = outcome.uncounted;
  return absl::StrCat(
      outcome.restart_count - more, " of ", max_restarts, " restarts used",
      more == 0 ? "" : absl::StrCat(", ", more, " more ", more == 1 ? "does" : "do", " not count"));
}

// As SummaryLines, but without colour, and text of workers and hosts is not safe for a terminal
// yet.
std::vector<std::string> RawLines(const Outcome& outcome, const SummaryStyle& style) {
  const std::string restarts = absl::StrCat(RestartsUsed(outcome, style.max_restarts),
                                            style.goodput.empty() ? "" : "; ", style.goodput);
  const bool may_restart = style.max_restarts > 0 || outcome.uncounted > 0;
  if (outcome.exit_code == kExitOk) {
    if (!style.verbose && style.goodput.empty() && style.lost.empty()) return {};
    std::vector<std::string> lines = {may_restart ? absl::StrCat("job succeeded; ", restarts)
                                                  : "job succeeded"};
    if (!style.lost.empty()) lines.push_back(absl::StrCat("  ", style.lost));
    AppendExcluded(outcome, lines);
    return lines;
  }
  std::vector<std::string> lines = {Header(outcome)};
  const bool for_worker = outcome.worker_failed;
  if (for_worker && !WasStarted(outcome.failures.front())) return lines;  // The header is enough.
  AppendConsequences(outcome, for_worker ? 1 : 0, lines);
  if (for_worker && KindOf(outcome.failures.front()) == CauseKind::kPeerGone &&
      !outcome.awaited.empty() && outcome.awaited.front().did.empty()) {
    lines.push_back(absl::StrCat("  did not fail: ", Names(outcome.awaited)));
  }
  AppendExcluded(outcome, lines);
  AppendHistory(outcome, lines);
  if (may_restart) lines.push_back(absl::StrCat("  ", restarts));
  if (!style.lost.empty()) lines.push_back(absl::StrCat("  ", style.lost));
  if (const std::string advice = AdviceFor(outcome, style.store_port); !advice.empty()) {
    lines.push_back(absl::StrCat("  advice: ", advice));
  }
  lines.push_back(absl::StrCat("  exit code ", outcome.exit_code));
  if (for_worker) {
    const size_t room = kMostLines - std::min(kMostLines, lines.size());
    const std::vector<std::string> evidence = Evidence(outcome.failures.front(), room);
    lines.insert(lines.begin() + 1, evidence.begin(), evidence.end());
  }
  return lines;
}

}  // namespace

std::vector<std::string> SummaryLines(const Outcome& outcome, const SummaryStyle& style) {
  std::vector<std::string> lines = RawLines(outcome, style);
  for (std::string& line : lines) line = TerminalText(line);
  if (style.colour && outcome.exit_code != kExitOk) {
    lines.front() = absl::StrCat("\x1b[1;31m", lines.front(), "\x1b[0m");
  }
  return lines;
}

}  // namespace hlaunch
