// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/job/question.h"
#include "rendezvous/round/hang/rank_snapshot.h"

// The output of `hlaunch why`. Pure. Its input comes from strangers.

namespace hlaunch {

// Returns the snapshots that the nodes reported of their own ranks; those of other ranks are
// dropped. Sets the problem of a node whose text cannot be parsed.
std::vector<RankSnapshot> TakeSnapshots(JobAnswer& answer);

// Tells which ranks hold up which, if all ranks were asked and none goes on. Then lists all ranks
// by what they do, and the nodes that have not answered.
std::string WhyText(const std::string& job_id, const RankQuestion& question,
                    const JobAnswer& answer, const std::vector<RankSnapshot>& ranks);

// The same as JSON, with each rank.
std::string WhyJson(const std::string& job_id, const RankQuestion& question,
                    const JobAnswer& answer, const std::vector<RankSnapshot>& ranks);

}  // namespace hlaunch
