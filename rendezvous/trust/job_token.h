// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A token for one job of a service, made from the service's own. It holds the job's secret, which
// is derived from the service's token and gives a key; a certificate of that, which the service's
// authority has signed and which names the job; and the authority's public key. So whoever has it
// can show that it belongs to that job, and knows the service, but can sign nothing: neither for
// other jobs nor as a service. The service keeps nothing of it.

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

// Whether `token` says of itself that it is one, whole or not.
bool IsJobToken(absl::string_view token);

// A token for job `job_id` of the services that have `token`. Each call makes another one; all are
// good for as long as the service keeps its token.
//
// Errors:
//   InvalidArgument - `token` is none that a service may have, see CheckTokenText; or `job_id` is
//       empty or longer than a job's id may be.
//   Internal - OpenSSL refuses.
absl::StatusOr<std::string> MakeJobToken(absl::string_view token, absl::string_view job_id);

// Errors: the messages hold nothing of it.
//   InvalidArgument - it is not whole.
//   Internal - OpenSSL refuses.
absl::StatusOr<JobToken> ReadJobToken(absl::string_view token);

// The name that a certificate for one job alone has besides others, and the job of such a name;
// unset: it is none.
std::string UriOfJob(absl::string_view job_id);
std::optional<std::string> JobOfUri(absl::string_view uri);

}  // namespace hlaunch
