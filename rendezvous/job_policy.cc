// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job_policy.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::string DescribeDifferences(const JobPolicy& holds, const JobPolicy& here) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* option, const auto& a, const auto& b) {
    if (a != b) differences.push_back(absl::StrCat(option, " ", a, " (here ", b, ")"));
  };
  compare("--max-restarts", holds.max_restarts, here.max_restarts);
  compare("--spares", holds.spares, here.spares);
  compare("--join-timeout", Seconds(holds.join_timeout), Seconds(here.join_timeout));
  compare("--last-call", Seconds(holds.last_call), Seconds(here.last_call));
  compare("--loss-limit", Seconds(holds.lease.loss_limit), Seconds(here.lease.loss_limit));
  compare("--preflight", holds.preflight ? "quick" : "off", here.preflight ? "quick" : "off");
  return absl::StrJoin(differences, ", ");
}

}  // namespace hlaunch
