// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/job_spec.h"

namespace hlaunch {

JobMode DecideMode(const Options& options) {
  if (options.policy.max_nodes == 1) return JobMode::kSingleNode;
  if (options.meeting.endpoint.has_value()) {
    return options.meeting.backend == "static" ? JobMode::kStatic : JobMode::kEndpoint;
  }
  return options.meeting.master_addr.empty() ? JobMode::kListenAndPrint : JobMode::kStatic;
}

}  // namespace hlaunch
