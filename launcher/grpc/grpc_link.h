// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// Hosts the job's rendezvous if this host owns the endpoint, else connects to it. If no endpoint
// was named, prints the command for the other hosts. Errors: as ConnectFn.
absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options);

// The command with which a keeper reports the death of its node; see NodeLink::DeathReport.
inline constexpr char kDeathReportWord[] = "--death-report";

// Reports the death of a node to the rendezvous. Returns the exit code. Requires: the command line
// begins with kDeathReportWord.
int SendDeathReport(int argc, char** argv);

}  // namespace hlaunch
