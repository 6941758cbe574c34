// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/words/endpoint.h"

// `hlaunch cluster`: its command line. Pure.

namespace hlaunch {

enum class ClusterVerb { kInit, kJoin, kToken, kThrowOut, kLeave, kStatus };

// As read. A value.
struct MembershipOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  ClusterVerb verb = ClusterVerb::kStatus;
  std::string name;          // This host's in the cluster; empty: its own.
  Endpoint listen;           // Of init: where the head listens; no host: at all addresses.
  Endpoint head;             // Of join.
  std::string token;         // Of join: one of these two is set.
  std::string token_file;    // "-": stdin.
  std::string host;          // Of throw-out.
  bool end_cluster = false;  // Of leave, on the head's host.
  bool json = false;         // Of status.
};

// Errors:
//   InvalidArgument - one line that names what is wrong, and the way out. It shows no token.
//
// Requires: the command line begins with `cluster`.
absl::StatusOr<MembershipOptions> ParseMembershipOptions(int argc, const char* const* argv);

}  // namespace hlaunch
