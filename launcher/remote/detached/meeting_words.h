// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/remote/detached/job_record.h"

namespace hlaunch {

// Completes `words`, the command line of a command that asks a job's rendezvous: first the program,
// then the command. If the words name no rendezvous but a running job of `known`, adds where its
// nodes meet. If they name no job either and one job runs, adds that job too. Else returns them as
// they are. Reads the jobs' records.
std::vector<std::string> WithMeeting(std::vector<std::string> words,
                                     const std::vector<DetachedJob>& known);

// The same for a command that also names a node, after the job: `drain JOB NODE …`. In
// `drain NODE …` the only running job is inserted.
std::vector<std::string> WithMeetingOfNode(std::vector<std::string> words,
                                           const std::vector<DetachedJob>& known);

}  // namespace hlaunch
