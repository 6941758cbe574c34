// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/summary.h"

#include <string.h>  // sigabbrev_np

#include <algorithm>
#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/printable.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr size_t kTailLines = 20;
constexpr size_t kNamedConsequences = 3;
constexpr int kLastSignalExit = kExitSignalBase + 64;

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

int ExitCodeOf(const WorkerFailure& failure) {
  return failure.signal != 0 ? kExitSignalBase + failure.signal : failure.exit_code;
}

// Whether there ever was a process.
bool WasStarted(const WorkerFailure& failure) { return failure.pid != 0; }

// Whether the first failure is why the job ended; else it ended for a node or a person.
bool EndedForWorker(const Outcome& outcome) {
  return !outcome.failures.empty() && outcome.exit_code == ExitCodeOf(outcome.failures.front());
}

bool IsInterrupt(int exit_code) {
  return exit_code > kExitSignalBase && exit_code <= kLastSignalExit;
}

// What happened, in words, where the rendezvous gave none.
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
    case kExitAgentLost:
      return "hlaunch itself was killed on a node";
    case kExitNoResources:
      return "a node ran out of processes, descriptors or memory";
    default:
      return IsInterrupt(exit_code)
                 ? absl::StrCat(SignalName(exit_code - kExitSignalBase), " was received")
                 : absl::StrCat("exit code ", exit_code);
  }
}

// Whether `text` says that port is in use, in the words of torch, the C library or gRPC.
bool SaysPortInUse(absl::string_view text, uint16_t port) {
  const std::string colon = absl::StrCat(":", port), words = absl::StrCat("port: ", port);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool in_use = absl::StrContains(line, "ddress already in use") ||
                        absl::StrContains(line, "EADDRINUSE") ||
                        absl::StrContains(line, "Failed to add port to server");
    if (!in_use) continue;
    for (const std::string& name : {colon, words}) {
      const size_t at = line.find(name);
      const size_t end = at + name.size();
      if (at != line.npos && (end == line.size() || !absl::ascii_isdigit(line[end]))) return true;
    }
  }
  return false;
}

// What to do about it; empty if there is nothing to say.
std::string HintFor(const Outcome& outcome, uint16_t store_port) {
  if (EndedForWorker(outcome)) {
    const WorkerFailure& first = outcome.failures.front();
    if (store_port != 0 &&
        (SaysPortInUse(first.message, store_port) || SaysPortInUse(first.log_tail, store_port))) {
      return absl::StrCat("port ", store_port,
                          " is MASTER_PORT, where hlaunch serves the store; this program wants to "
                          "serve there itself: add --master-store=worker");
    }
    if (first.signal != SIGKILL) return "";
    return absl::StrCat("SIGKILL is often the kernel short of memory; see dmesg on ",
                        PrintableLine(first.host));
  }
  switch (outcome.exit_code) {
    case kExitBadEndpoint:
      return "check the host and port that were named, and that its node is started";
    case kExitPortInUse:
      return "end the program that holds the port, or name another one on all nodes";
    case kExitRefused:
      return "all nodes need the same --rdzv-id, --nnodes and token";
    case kExitJoinTimeout:
      return "start the missing nodes, or give them longer with --join-timeout";
    case kExitRendezvousLost:
      return "look at that host first, then at the network to it; --loss-limit sets the patience";
    case kExitNodeLost:
      return "look at that host first, then at the network; --max-restarts lets the job try again";
    case kExitInternal:
      return "this is a bug in hlaunch; please report it with the lines above";
    default:
      return "";
  }
}

std::string Header(const Outcome& outcome) {
  if (EndedForWorker(outcome)) {
    return absl::StrCat("job failed: ", FailureLine(outcome.failures.front()));
  }
  const std::string reason = PrintableLine(outcome.reason);
  return absl::StrCat(IsInterrupt(outcome.exit_code) ? "job stopped: " : "job failed: ",
                      reason.empty() ? ReasonFor(outcome.exit_code) : reason);
}

// The error file's message, unless stderr says it anyway, and the end of stderr.
void AppendEvidence(const WorkerFailure& failure, std::vector<std::string>& lines) {
  const std::string message = PrintableLine(failure.message);
  if (!message.empty() && !absl::StrContains(failure.log_tail, message)) {
    lines.push_back(absl::StrCat("  error: ", message));
  }
  const std::vector<std::string> tail = PrintableLines(failure.log_tail, kTailLines);
  if (!tail.empty()) lines.push_back("  the end of its stderr:");
  for (const std::string& line : tail) lines.push_back(absl::StrCat("    | ", line));
}

// One line for all failures from `first` on; none if there are none.
void AppendConsequences(const Outcome& outcome, size_t first, std::vector<std::string>& lines) {
  const size_t total =
      std::max<size_t>(std::max(outcome.total_failures, 0), outcome.failures.size());
  if (total <= first) return;
  const size_t named_end = std::min(outcome.failures.size(), first + kNamedConsequences);
  std::vector<std::string> named;
  for (size_t i = first; i < named_end; ++i) {
    const WorkerFailure& failure = outcome.failures[i];
    named.push_back(absl::StrCat("rank ", failure.rank, " (", PrintableLine(failure.host), ") ",
                                 HowItEnded(failure)));
  }
  if (total > named_end) named.push_back(absl::StrCat("and ", total - named_end, " more"));
  lines.push_back(absl::StrCat(first == 0 ? "  workers that failed: " : "  failed after it: ",
                               absl::StrJoin(named, ", ")));
}

}  // namespace

std::string FailureLine(const WorkerFailure& failure) {
  if (!WasStarted(failure)) {
    return absl::StrCat("rank ", failure.rank, " (", PrintableLine(failure.host),
                        ") was not started: ", PrintableLine(failure.message));
  }
  return absl::StrCat("rank ", failure.rank, " (", PrintableLine(failure.host), ", local rank ",
                      failure.local_rank, ", pid ", failure.pid, ") ", HowItEnded(failure));
}

std::string SummaryLine(const Outcome& outcome) {
  if (outcome.exit_code == kExitOk) return "";
  return absl::StrCat(Header(outcome), "; exit code ", outcome.exit_code);
}

std::vector<std::string> SummaryLines(const Outcome& outcome, const SummaryStyle& style) {
  const std::string restarts =
      absl::StrCat(outcome.restart_count, " of ", style.max_restarts, " restarts used");
  if (outcome.exit_code == kExitOk) {
    if (!style.verbose) return {};
    return {style.max_restarts > 0 ? absl::StrCat("job succeeded; ", restarts) : "job succeeded"};
  }
  std::vector<std::string> lines;
  lines.push_back(style.colour ? absl::StrCat("\x1b[1;31m", Header(outcome), "\x1b[0m")
                               : Header(outcome));
  const bool for_worker = EndedForWorker(outcome);
  if (for_worker && !WasStarted(outcome.failures.front())) return lines;  // That says it all.
  if (for_worker) AppendEvidence(outcome.failures.front(), lines);
  AppendConsequences(outcome, for_worker ? 1 : 0, lines);
  if (style.max_restarts > 0) lines.push_back(absl::StrCat("  ", restarts));
  if (const std::string hint = HintFor(outcome, style.store_port); !hint.empty()) {
    lines.push_back(absl::StrCat("  hint: ", hint));
  }
  lines.push_back(absl::StrCat("  exit code ", outcome.exit_code));
  return lines;
}

}  // namespace hlaunch
