// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/preflight.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/quorum.h"

namespace hlaunch {

PreflightVerdict DecidePreflight(const std::vector<PreflightReport>& members, int standing_by,
                                 int min_nodes) {
  constexpr size_t kSeveral = 2;
  PreflightVerdict verdict;
  std::vector<std::string> silent, unfit;
  absl::string_view why;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].answered && members[i].unfit.empty()) continue;
    verdict.excluded.push_back(i);
    if (members[i].answered && why.empty()) why = members[i].unfit;
    (members[i].answered ? unfit : silent).emplace_back(members[i].host);
  }
  if (verdict.excluded.empty()) return verdict;
  const size_t others = members.size() - 1;
  if (unfit.size() == others && others >= kSeveral && verdict.excluded.front() != 0) {
    verdict.excluded = {0};
    verdict.reason = absl::StrCat("none of the ", others, " other nodes can use ", members[0].host,
                                  " as master: ", why);
  } else {
    if (!unfit.empty()) verdict.reason = absl::StrCat(NameSome(unfit), ": ", why);
    if (!silent.empty()) {
      absl::StrAppend(&verdict.reason, verdict.reason.empty() ? "" : "; ", NameSome(silent),
                      " did not answer");
    }
  }
  const size_t left = members.size() - verdict.excluded.size() + static_cast<size_t>(standing_by);
  verdict.kind = left >= static_cast<size_t>(min_nodes) ? PreflightVerdict::Kind::kExclude
                                                        : PreflightVerdict::Kind::kFail;
  return verdict;
}

}  // namespace hlaunch
