// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/text/endpoint.h"
#include "rendezvous/cluster/head/own_limits.h"

namespace hlaunch {

// The command line of `hlaunchd head` as read. A value.
struct HeadOptions {
  std::optional<std::string> text_to_print;  // Set by --help and --version; print it and end.
  std::string folder = "/var/lib/hlaunch-head";
  Endpoint listen;                  // An empty host stands for all addresses of this host.
  std::optional<Endpoint> metrics;  // The literal address that serves metrics; unset: none does.
  std::string join_at;  // Where hosts find the head; empty: derived from the listen address.
  OwnLimits limits;
  bool verbose = false;
};

// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
//
// Requires: argv[1] is "head".
absl::StatusOr<HeadOptions> ParseHeadOptions(int argc, const char* const* argv);

}  // namespace hlaunch
