// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/cause/accusation.h"
#include "rendezvous/round/values/round.h"

// Decides which of several failures caused the others. Pure: uses what workers said and the order
// in which the failures were heard, but no clock of any host.

namespace hlaunch {

// What a failure says of its cause, judged by its kind and its own words.
enum class CauseKind {
  kOriginal,   // Nothing says that another worker is to blame.
  kNoConnect,  // No peer accepted its connection.
  kTimedOut,   // It waited in vain for other workers.
  kPeerGone,   // Its connection to another worker broke.
};

CauseKind KindOf(const WorkerFailure& failure);

struct Cause {
  size_t index = 0;  // Index in the given failures.
  CauseKind kind = CauseKind::kOriginal;
  std::string reason;  // Why this failure, in one line; empty if it is the only one.
  // If it is a consequence: the ranks that its words name. As a rule they did not fail.
  std::optional<Accusation> accusation = {};
};

// Returns the first of `failures`, which are in the order heard, of the kind that explains most. A
// worker that failed by itself explains all others. A worker that could not connect or timed out
// closed its connections when it ended, so it explains lost connections. If all failures are
// consequences, one whose words name another rank goes before one that names none; if the named
// rank failed, too, its own words are followed in turn. Requires: `failures` is not empty.
Cause FirstCause(const std::vector<WorkerFailure>& failures);

// Returns how long a failure of that kind waits for the one that caused it: the worker that broke a
// connection may still be exiting, and workers time out one by one.
Duration CauseWindow(CauseKind kind);

// Returns the worker's last words on why it ended: "ValueError: bad batch". They are one line of at
// most 300 bytes without control characters. They come from the error file, else from the last
// traceback in its stderr, else from what C++ prints for an uncaught exception. If torch carried an
// exception over from a data loader, the original one counts. Empty if there are none.
std::string ExceptionOf(const WorkerFailure& failure);

// Returns the further lines of that exception's message, at most 8, each cleaned and cut in the
// same way.
std::vector<std::string> MoreOfException(const WorkerFailure& failure);

// Returns whether the worker has given up whose stderr ends with `tail`: its last words say that it
// waited in vain for others, could not connect to one or lost one. Such a worker is about to exit,
// unless it has survived that.
bool HasGivenUp(absl::string_view tail);

// Reduces `failure` to what is told where the report is not printed: removes the log and the
// traceback.
void Shorten(WorkerFailure& failure);

}  // namespace hlaunch
