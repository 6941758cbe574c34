// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/round.h"

// Texts of messages, records and the status for a simulation's trace. Each text contains every
// part of the value in which two builds could differ.

namespace hlaunch {

const char* KindName(Directive::Kind kind);
const char* StateName(JobState state);
std::string Words(const NodeUpdate& update);
std::string Words(const Outcome& outcome);
std::string Words(const JobRecord& record);
std::string Words(const JobStatus& status);

}  // namespace hlaunch
