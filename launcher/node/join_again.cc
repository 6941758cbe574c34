// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/join_again.h"

#include "absl/strings/str_cat.h"

namespace hlaunch {

JoinAgain DecideJoinAgain(const AgentResult& result, int used, int max_restarts, bool in_pod) {
  const bool replaced = absl::IsOutOfRange(result.end);
  const bool gone = absl::IsDeadlineExceeded(result.end) && in_pod;
  JoinAgain again;
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
