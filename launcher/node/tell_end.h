// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/health/local/check_result.h"
#include "agent/observe/goodput.h"
#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"

namespace hlaunch {

// Why this node's part ended, in one line. Pure.
std::string EndReason(const AgentResult& result);

// Tells how the job ended wherever that is asked for: in the report's file, in the container's
// termination message, on stdout for `hlaunch doctor`, on stderr. `checked` is what the last
// checks of this node found. What cannot be written is logged.
void TellEnd(const Options& options, const JobSpec& spec, const AgentResult& result,
             const std::vector<CheckResult>& checked, const Goodput& goodput);

}  // namespace hlaunch
