// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/health/local/check_result.h"
#include "agent/watch/observe/goodput.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"

namespace hlaunch {

// Returns why this node's part ended, in one line. Pure.
std::string EndReason(const AgentResult& result);

// Reports how the job ended wherever that is wanted: in the report's file, in the container's
// termination message, on stdout for `hlaunch doctor`, and on stderr. `checked` is the result of
// this node's last checks. Logs a file that cannot be written.
void TellEnd(const Options& options, const JobSpec& spec, const AgentResult& result,
             const std::vector<CheckResult>& checked, const Goodput& goodput);

}  // namespace hlaunch
