// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/envelope.h"
#include "rendezvous/head/head_table.h"

namespace hlaunch {

// Whether the job is as the asker has seen it, so that the answer can wait for it to change. Who
// may not ask, or asks wrongly, does not wait.
bool IsSeen(const HeadTable& table, const ClusterUser& user, const JobQuestion& question);

// Answers what a user asks, after his right to it: all verbs but `log`, `token`, and the waiting
// of `job`, which is answered at once.
//
// Errors:
//   PermissionDenied, Unimplemented - as MayAsk.
//   InvalidArgument - the question is wrong; the message names the field.
//   NotFound - there is no such job or host.
//   FailedPrecondition - the job has no rendezvous (now), or no hosts here could ever have it.
//   ResourceExhausted - he has too many jobs.
absl::StatusOr<nlohmann::json> AnswerUser(HeadTable& table, const ClusterUser& user,
                                          absl::string_view verb, const nlohmann::json& body,
                                          HeadTime t);

// The host that has the log that he asks for.
//
// Errors:
//   PermissionDenied, InvalidArgument, NotFound - as above.
//   FailedPrecondition - the job has not started yet.
//   Unavailable - that host is away; the message says since when.
absl::StatusOr<std::string> HostOfLog(const HeadTable& table, const ClusterUser& user,
                                      const LogQuestion& question);

}  // namespace hlaunch
