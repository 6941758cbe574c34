// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/accusation.h"
#include "rendezvous/round/round.h"

// The decision which of several failures is the cause of the others. Pure: what workers said and
// the order in which they were heard, no clock of any host.

namespace hlaunch {

// What a failure looks like by its own words.
enum class FailureKind {
  kOriginal,   // Nothing says that another worker is to blame.
  kNoConnect,  // Nobody let it connect.
  kTimedOut,   // It waited in vain for other workers.
  kPeerGone,   // Another worker was gone when it spoke to it.
};

FailureKind KindOf(const WorkerFailure& failure);

// In the evidence of a worker that was ended because it had stalled, where its stacks say so: it
// waited in vain.
inline constexpr char kWhileItWaits[] = "while it waits for other workers";

// In the evidence of a worker of MPI that has lost another one: it ended by that.
inline constexpr char kOpenMpiLostRank[] = "as Open MPI does where it has lost another rank";

// In the evidence of a worker that others may be the cause of: what the preflight of its round said
// of the network, without ending it.
inline constexpr char kBeforeTheRound[] = "before the round: ";

struct Cause {
  size_t index = 0;  // In the failures that were asked about.
  FailureKind kind = FailureKind::kOriginal;
  std::string reason;  // Why this one, in one line; empty if it is the only one.
  // Whom its words name that did not fail itself, if it is a consequence.
  std::optional<Accusation> accusation = {};
};

// Of `failures` in the order heard the first of the kind that explains most: whoever failed by
// itself explains all others, and whoever could not connect or timed out has closed connections
// when it ended. Where all are consequences, one whose words name another rank goes before one
// that names none, and a rank that is named and failed, too, is asked in turn. Requires: not
// empty.
Cause FirstCause(const std::vector<WorkerFailure>& failures);

// How long a failure of that kind waits for the one that brought it about: the worker that broke
// a connection may still be on its way out, and those that time out do so one by one.
Duration CauseWindow(FailureKind kind);

// The worker's last words on why it ended, in one line of at most 300 bytes without control
// characters: "ValueError: bad batch", from the error file, else the last traceback in its
// stderr, else what C++ says of an exception that nobody caught. Of one that torch carried over
// from a data loader it is the original. Empty if there are none.
std::string ExceptionOf(const WorkerFailure& failure);

// The further lines of that exception's message, each as clean and as short; at most 8.
std::vector<std::string> MoreOfException(const WorkerFailure& failure);

// Whether a worker, of whose stderr `tail` is the end, has given up: its last words say that it
// waited in vain for others, could not connect to one or lost one. It is about to exit, unless it
// has survived that.
bool HasGivenUp(absl::string_view tail);

// Leaves of `failure` what is told where the report is not printed: no log, and no traceback.
void Shorten(WorkerFailure& failure);

// The last whole lines of `text`, at most `max_bytes` of them.
std::string LastLines(absl::string_view text, size_t max_bytes);

// Of a Python program's stderr the last traceback that ended anything, from its first line that
// is there to the exception's, without the "[rank3]: " that torch puts before each line; at most
// kMaxTracebackBytes of its end. Empty if there is none.
std::string TracebackIn(absl::string_view text);

}  // namespace hlaunch
