// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/job_spec.h"

#include "proto/contract/exit_code.h"

namespace hlaunch {

JobMode DecideMode(const Options& options) {
  if (options.max_nodes == 1) return JobMode::kSingleNode;
  if (options.rdzv_endpoint.has_value()) {
    return options.rdzv_backend == "static" ? JobMode::kStatic : JobMode::kEndpoint;
  }
  return options.master_addr.empty() ? JobMode::kListenAndPrint : JobMode::kStatic;
}

int ExitCodeBeforeStart(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
      return kExitNotExecutable;
    case absl::StatusCode::kResourceExhausted:
      return kExitNoResources;
    default:
      return kExitInternal;
  }
}

}  // namespace hlaunch
