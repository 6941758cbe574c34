// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"
#include "rendezvous/job/question.h"

// The part of an answer about ranks that is the same for all questions. Pure.

namespace hlaunch {

// Errors:
//   InvalidArgument - the round has not all of the ranks that were asked for; nothing where no
//     worker runs.
absl::Status CheckRanks(const RankQuestion& question, const JobAnswer& answer);

// "job llama, round 3: 16 workers", or why no worker runs; a line.
std::string HeadOf(const std::string& job_id, const JobAnswer& answer);

// "rank 5 (node1)", "ranks 0-3,7 (node0, node2)"; of many hosts the first few and how many more.
std::string NameOf(const std::vector<Rank>& ranks, const JobAnswer& answer);

// A line for each node that has not answered, and why; of many the first few and how many more.
std::string SilentText(const JobAnswer& answer);

// {"job_id", "round", "world_size", "explanation", "silent"}, for more to be added.
nlohmann::ordered_json HeadJson(const std::string& job_id, const JobAnswer& answer);

}  // namespace hlaunch
