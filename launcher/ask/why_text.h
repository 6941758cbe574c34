// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/hang/rank_picture.h"
#include "rendezvous/job/question.h"

// What `hlaunch why` prints. Pure: made of what strangers say.

namespace hlaunch {

// What the nodes have told of their ranks, and of no others; a node whose text is none has a
// problem from now on.
std::vector<RankPicture> TakePictures(JobAnswer& answer);

// Who holds up whom where all ranks were asked and nobody goes on; then everybody by what they do,
// and who has not answered.
std::string WhyText(const std::string& job_id, const RankQuestion& question,
                    const JobAnswer& answer, const std::vector<RankPicture>& ranks);

// The same for programs, with each rank.
std::string WhyJson(const std::string& job_id, const RankQuestion& question,
                    const JobAnswer& answer, const std::vector<RankPicture>& ranks);

}  // namespace hlaunch
