// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/words/endpoint.h"
#include "proto/base/log.h"
#include "rendezvous/trust/certificate_files.h"

namespace hlaunch {

// An etcd cluster that keeps jobs, as --state and its like name it. A value.
struct EtcdState {
  std::vector<Endpoint> members;
  std::string prefix = "/hlaunch";
  CertificateFiles tls;   // None: in clear.
  std::string user_file;  // Empty: no user.
};

// The command line of `hlaunch-rendezvous` as read. A value.
struct ServiceOptions {
  std::optional<std::string> text_to_print;  // --help, --version: nothing else is set.
  Endpoint listen = {"", kDefaultRdzvPort};  // No host: all addresses of this one.
  std::string state_directory;               // Empty: nothing is kept, or it is in etcd.
  std::optional<EtcdState> etcd;
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
  int max_jobs = 1000;
  std::optional<Endpoint> metrics;  // Where they are served, a literal; unset: nowhere.
  LogLevel log_level = LogLevel::kInfo;

  bool keeps() const { return !state_directory.empty() || etcd.has_value(); }
};

// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<ServiceOptions> ParseServiceOptions(int argc, const char* const* argv);

}  // namespace hlaunch
