// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/text/endpoint.h"

// `hlaunch cluster`: its command line. Pure.

namespace hlaunch {

enum class ClusterVerb { kInit, kJoin, kToken, kThrowOut, kLeave, kStatus };

// The options as read. A value.
struct MembershipOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  ClusterVerb verb = ClusterVerb::kStatus;
  std::string name;          // The name of this host in the cluster; empty: its host name.
  Endpoint listen;           // init: where the head listens; empty host: all addresses.
  Endpoint head;             // join.
  std::string token;         // join: one of these two is set.
  std::string token_file;    // "-": stdin.
  std::string host;          // throw-out.
  bool end_cluster = false;  // leave, on the head's host.
  bool json = false;         // status.
};

// Errors:
//   InvalidArgument - one line that names what is wrong and how to fix it. It shows no token.
//
// Requires: the command line begins with `cluster`.
absl::StatusOr<MembershipOptions> ParseMembershipOptions(int argc, const char* const* argv);

}  // namespace hlaunch
