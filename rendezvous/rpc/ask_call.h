// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "grpcpp/support/server_callback.h"
#include "hlaunch/v1/rendezvous.pb.h"
#include "rendezvous/job/job_rendezvous.h"

namespace hlaunch {

// Starts the call that asks the ranks of `job`, and fills `response` when their nodes have
// answered. gRPC owns the reactor. The question ends if the caller goes away.
grpc::ServerUnaryReactor* BeginAskCall(std::shared_ptr<JobRendezvous> job,
                                       const RankQuestion& question,
                                       v1::AskRanksResponse* response);

}  // namespace hlaunch
