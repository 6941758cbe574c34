// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// Hosts the job's rendezvous if this host owns the endpoint, else connects to it. If no endpoint
// was named, prints the command for the other hosts. Errors: as ConnectFn.
absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options);

}  // namespace hlaunch
