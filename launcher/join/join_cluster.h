// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/join/member_files.h"
#include "launcher/words/endpoint.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/envelope.h"

namespace hlaunch {

// Asks the head, which must prove that its authority has the pin `pin`, one question without
// showing a certificate; rendezvous/cluster_wire does it. Blocks for a while.
using AskHeadFn = std::function<absl::StatusOr<nlohmann::json>(
    const Endpoint& head, const std::string& pin, const Envelope& question)>;

// What a host wants that is to join. A value; `token` is secret.
struct JoinWish {
  Endpoint head;
  std::string token;
  std::string host;  // Its name.
};

// Makes this host one of the cluster: a new key, a certificate of the head's authority for it, and
// both in this host's folder. A host of that cluster joins again, as one that was thrown out must.
// `clock`: seconds since 1970. Whatever fails, what was there before is there still.
//
// Errors: the messages tell what to do.
//   AlreadyExists - this host belongs to another cluster already; or the head says that the name is
//   in
//       use.
//   InvalidArgument - the token is not whole, or the name is none.
//   Unavailable - nobody answers there.
//   FailedPrecondition - the head's certificate does not fit the token; the clocks differ too much;
//       or the head says that the token was used already.
//   Whatever the head answers: see JoinDesk::Join.
//   As of TrustFolder::Make and Replace.
absl::Status JoinCluster(const ClusterPaths& paths, const JoinWish& wish, const AskHeadFn& ask,
                         const std::function<std::time_t()>& clock);

}  // namespace hlaunch
