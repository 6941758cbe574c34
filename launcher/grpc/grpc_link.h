// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// Hosts the job's rendezvous if this host owns the endpoint, else connects to it. Prints what
// the other hosts are to run where nothing was named. Errors: as ConnectFn.
absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options);

// The command with which a keeper has the death of its node reported; see NodeLink::Obituary.
inline constexpr char kObituaryWord[] = "--obituary";

// Tells the rendezvous of the death of a node; the exit code. Requires: the command line begins
// with kObituaryWord.
int SendObituary(int argc, char** argv);

}  // namespace hlaunch
