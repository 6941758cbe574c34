// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/text/endpoint.h"
#include "proto/base/log.h"
#include "rendezvous/net/trust/certificate_files.h"

namespace hlaunch {

// An etcd cluster that keeps jobs, as given by --state and the other --state-… options. A value.
struct EtcdState {
  std::vector<Endpoint> members;
  std::string prefix = "/hlaunch";
  CertificateFiles tls;   // None: the connection is not encrypted.
  std::string user_file;  // Empty: no user.
};

// A namespace of Kubernetes that keeps jobs, as given by --state and the other --state-… options. A
// value.
struct KubernetesState {
  std::string name_space;                  // Empty: that of the pod.
  std::string name = "hlaunch";            // The name of the Lease and the prefix of ConfigMaps.
  std::optional<Endpoint> api;             // Unset: the API server that a pod finds.
  bool tls = true;                         // Use TLS to reach `api`.
  std::string authority_file, token_file;  // Empty: those of the pod, or none.
};

// The parsed command line of `hlaunch-rendezvous`. A value.
struct ServiceOptions {
  std::optional<std::string> text_to_print;  // --help, --version: nothing else is set.
  Endpoint listen = {"", kDefaultRdzvPort};  // No host: all addresses.
  std::string state_directory;  // Empty: nothing is kept, or one of the next two keeps it.
  std::optional<EtcdState> etcd;
  std::optional<KubernetesState> kubernetes;
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
  int max_jobs = 1000;
  std::optional<Endpoint> metrics;      // Where metrics are served, an IP literal. Unset: nowhere.
  std::optional<Endpoint> status_page;  // Where status pages are served. Unset: nowhere.
  LogLevel log_level = LogLevel::kInfo;

  bool keeps() const { return !state_directory.empty() || etcd || kubernetes; }
};

// Parses the command line. Pure.
//
// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<ServiceOptions> ParseServiceOptions(int argc, const char* const* argv);

}  // namespace hlaunch
