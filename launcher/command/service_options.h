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

// A namespace of Kubernetes that keeps jobs, as --state and its like name it. A value.
struct KubernetesState {
  std::string name_space;                  // Empty: the pod's own.
  std::string name = "hlaunch";            // Of the Lease; names of ConfigMaps begin with it.
  std::optional<Endpoint> api;             // Unset: as a pod finds it.
  bool tls = true;                         // To `api`.
  std::string authority_file, token_file;  // Empty: the pod's own, or none.
};

// The command line of `hlaunch-rendezvous` as read. A value.
struct ServiceOptions {
  std::optional<std::string> text_to_print;  // --help, --version: nothing else is set.
  Endpoint listen = {"", kDefaultRdzvPort};  // No host: all addresses of this one.
  std::string state_directory;               // Empty: nothing is kept, or it is shared.
  std::optional<EtcdState> etcd;
  std::optional<KubernetesState> kubernetes;
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
  int max_jobs = 1000;
  std::optional<Endpoint> metrics;      // Where they are served, a literal; unset: nowhere.
  std::optional<Endpoint> status_page;  // The same.
  LogLevel log_level = LogLevel::kInfo;

  bool keeps() const { return !state_directory.empty() || etcd || kubernetes; }
};

// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<ServiceOptions> ParseServiceOptions(int argc, const char* const* argv);

}  // namespace hlaunch
