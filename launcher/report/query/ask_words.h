// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/endpoint.h"
#include "rendezvous/net/trust/certificate_files.h"

namespace hlaunch {

// The options of every command that asks a rendezvous. A value.
struct AskWords {
  std::string job_id;  // Empty: no job was named.
  Endpoint endpoint;
  std::vector<Endpoint> other_endpoints;  // Services beside `endpoint`; one of all leads.
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
  bool json = false;
};

// Errors:
//   InvalidArgument - the words name more than one job.
absl::Status CheckOneJob(absl::string_view word, const TypedWords& read);

// `word` is the command's word, as in "status". Pure.
//
// Errors:
//   InvalidArgument - one line that names what is wrong and how to fix it.
absl::StatusOr<AskWords> ReadAskWords(absl::string_view word, const TypedWords& read);

}  // namespace hlaunch
