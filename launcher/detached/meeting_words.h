// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/detached/job_record.h"

namespace hlaunch {

// `words` of a command that asks a job's rendezvous, the program's and the command's names first.
// If they name no rendezvous, and a job of `known` that runs, they get where its nodes meet; if
// they name no job either, the only one that runs. Else they stay as they are. Reads what is kept.
std::vector<std::string> WithMeeting(std::vector<std::string> words,
                                     const std::vector<DetachedJob>& known);

// The same where a node is named as well, the job first: `drain JOB NODE …`, or `drain NODE …`,
// which gets the only job that runs.
std::vector<std::string> WithMeetingOfNode(std::vector<std::string> words,
                                           const std::vector<DetachedJob>& known);

}  // namespace hlaunch
