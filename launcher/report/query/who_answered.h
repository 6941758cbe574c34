// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"
#include "rendezvous/job/question.h"

// The part of an answer about ranks that is common to all questions. Pure.

namespace hlaunch {

// Errors:
//   InvalidArgument - the round does not have all the ranks of the question. No error if no worker
//       runs.
absl::Status CheckRanks(const RankQuestion& question, const JobAnswer& answer);

// A line as in "job llama, round 3: 16 workers", or one that tells why no worker runs.
std::string HeadOf(const std::string& job_id, const JobAnswer& answer);

// As in "rank 5 (node1)" or "ranks 0-3,7 (node0, node2)". Of many hosts it names the first few and
// how many more there are.
std::string NameOf(const std::vector<Rank>& ranks, const JobAnswer& answer);

// One line for each node that has not answered, with the reason; of many nodes the first few and
// how many more there are.
std::string SilentText(const JobAnswer& answer);

// An object with "job_id", "round", "world_size", "explanation" and "silent". The caller adds more.
nlohmann::ordered_json HeadJson(const std::string& job_id, const JobAnswer& answer);

}  // namespace hlaunch
