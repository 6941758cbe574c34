// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/words/endpoint.h"
#include "proto/base/log.h"
#include "rendezvous/trust/certificate_files.h"

namespace hlaunch {

// The command line of `hlaunch-rendezvous` as read. A value.
struct ServiceOptions {
  std::optional<std::string> text_to_print;  // --help, --version: nothing else is set.
  Endpoint listen = {"", kDefaultRdzvPort};  // No host: all addresses of this one.
  std::string state_directory;               // Empty: nothing is kept.
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
  int max_jobs = 1000;
  std::optional<Endpoint> metrics;  // Where they are served, a literal; unset: nowhere.
  LogLevel log_level = LogLevel::kInfo;
};

// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<ServiceOptions> ParseServiceOptions(int argc, const char* const* argv);

}  // namespace hlaunch
