// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/job_spec.h"

namespace hlaunch {

JobMode DecideMode(const Options& options) {
  if (options.max_nodes == 1) return JobMode::kSingleNode;
  if (options.rdzv_endpoint.has_value()) {
    return options.rdzv_backend == "static" ? JobMode::kStatic : JobMode::kEndpoint;
  }
  return options.master_addr.empty() ? JobMode::kListenAndPrint : JobMode::kStatic;
}

}  // namespace hlaunch
