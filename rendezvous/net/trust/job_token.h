// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A token for one job of a service, made from the service's own token. It holds the job's secret,
// which is derived from the service's token and yields a key; a certificate of that key, which the
// service's authority has signed and which names the job; and the authority's public key. So its
// holder can prove that it belongs to that job, and recognizes the service, but can sign nothing:
// neither for other jobs nor as a service. The service stores nothing of it.

namespace hlaunch {

// What a job's token holds. A value.
struct JobToken {
  std::string job_id;
  std::string server_name;
  std::string fingerprint;
  std::string authority;  // These three in PEM.
  std::string certificate;
  std::string key;
  std::string greeting_key;  // See GreetingKeyOf.
};

// Returns whether `token` begins like a job's token, whole or not.
bool IsJobToken(absl::string_view token);

// Makes a token for job `job_id` of the services that have `token`. Each call makes another one;
// all are valid as long as the service keeps its token.
//
// Errors:
//   InvalidArgument - `token` cannot be a service's token (see CheckTokenText); or `job_id` is
//       empty or longer than a job's id may be.
//   Internal - OpenSSL refuses.
absl::StatusOr<std::string> MakeJobToken(absl::string_view token, absl::string_view job_id);

// Errors: the messages hold nothing of the token.
//   InvalidArgument - it is not whole.
//   Internal - OpenSSL refuses.
absl::StatusOr<JobToken> ReadJobToken(absl::string_view token);

// UriOfJob returns the further name in the certificate of a single job. JobOfUri returns the job of
// such a name; unset if it is not one.
std::string UriOfJob(absl::string_view job_id);
std::optional<std::string> JobOfUri(absl::string_view uri);

}  // namespace hlaunch
