// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/cluster/membership/member_files.h"
#include "launcher/text/endpoint.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/envelope.h"

namespace hlaunch {

// Asks the head one question without showing a certificate. The head must prove that its authority
// has the pin `pin`. rendezvous/net/cluster_wire implements it. Blocks for a while.
using AskHeadFn = std::function<absl::StatusOr<nlohmann::json>(
    const Endpoint& head, const std::string& pin, const Envelope& question)>;

// What a host that wants to join sends. A value; `token` is secret.
struct JoinWish {
  Endpoint head;
  std::string token;
  std::string host;  // The host's name.
};

// Makes this host a member of the cluster: makes a new key, has the head's authority certify it,
// and writes both into this host's folder. A member may join the same cluster again; a host that
// was thrown out must. `clock` returns seconds since 1970. If anything fails, the former files
// stay.
//
// Errors: the messages tell what to do.
//   AlreadyExists - this host belongs to another cluster; or the head says that the name is in use.
//   InvalidArgument - the token is not whole, or the name is not valid.
//   Unavailable - the head does not answer.
//   FailedPrecondition - the head's certificate does not fit the token; the clocks differ too much;
//       or the head says that the token was used already.
//   Whatever the head answers: see JoinRegistrar::Join.
//   Those of TrustFolder::Make and Replace.
absl::Status JoinCluster(const ClusterPaths& paths, const JoinWish& wish, const AskHeadFn& ask,
                         const std::function<std::time_t()>& clock);

}  // namespace hlaunch
