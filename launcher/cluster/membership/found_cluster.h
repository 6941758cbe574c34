// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/cluster/membership/member_files.h"

namespace hlaunch {

// The result of FoundCluster. A value; `token` is secret.
struct FoundedCluster {
  std::string head;       // HOST:PORT, where hosts find it.
  std::string token;      // The first one, which lets one host in.
  std::time_t until = 0;  // When the token expires.
};

// Makes a cluster. Writes its authority, the head's certificate and the first token into the head's
// folder, whose owner is kHeadUser, and the certificate of this host, named `host`. Writes all of
// it or nothing. `head` is where hosts find the head. Reads and writes files only.
//
// Errors:
//   AlreadyExists - this host belongs to a cluster or is a head.
//   NotFound - there is no user kHeadUser; the message says how to make it.
//   InvalidArgument - `host` is no valid host name.
//   Those of TrustFolder::Make and Replace.
absl::StatusOr<FoundedCluster> FoundCluster(const ClusterPaths& paths, const std::string& host,
                                            const std::string& head, std::time_t now);

}  // namespace hlaunch
