// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/job_spec.h"

namespace hlaunch {

JobMode DecideMode(const Options& options) {
  if (options.policy.max_nodes == 1) return JobMode::kSingleNode;
  if (options.meeting.endpoint.has_value()) {
    return options.meeting.backend == "static" ? JobMode::kStatic : JobMode::kEndpoint;
  }
  return options.meeting.master_addr.empty() ? JobMode::kListenAndPrint : JobMode::kStatic;
}

HostLoss DecideHostLoss(const Options& options) {
  if (options.on_host_loss) return *options.on_host_loss;
  const bool of_its_nodes = DecideMode(options) == JobMode::kEndpoint && !options.hosts.any() &&
                            options.hosts.system.empty() && options.meeting.other_endpoints.empty();
  return of_its_nodes && options.policy.max_restarts > 0 ? HostLoss::kWait : HostLoss::kEnd;
}

bool HearsAnybody(const Options& options, const JobSpec& spec) {
  return options.output.metrics.has_value() || options.output.status_page.has_value() ||
         spec.store.server.access.has_value() || spec.worker.any_user;
}

}  // namespace hlaunch
