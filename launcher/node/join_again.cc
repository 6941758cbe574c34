// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/join_again.h"

#include "absl/strings/str_cat.h"

namespace hlaunch {

JoinAgain DecideJoinAgain(const AgentResult& result, int used, int max_restarts,
                          const JobSight& sight) {
  const bool replaced = absl::IsOutOfRange(result.end);
  const bool silent = absl::IsDeadlineExceeded(result.end);
  JoinAgain again;
  if (silent && !result.outcome && !sight.round_begun && used < max_restarts) {
    again.joins = true;
    again.used = used;
    again.reason =
        absl::StrCat(result.end.message(), "; no round had begun, so this node waits for ",
                     "the rendezvous to be started again there; no restart is used");
    return again;
  }
  const bool gone = silent && sight.in_pod;
  again.used = used + result.restarts + 1;
  again.joins = !result.outcome && (replaced || gone) && again.used <= max_restarts;
  if (again.joins) {
    again.reason = absl::StrCat(result.end.message(), "; joining ",
                                replaced ? "the new rendezvous" : "the next rendezvous there",
                                ", which counts as restart ", again.used, " of ", max_restarts);
  }
  return again;
}

}  // namespace hlaunch
