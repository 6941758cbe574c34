// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/envelope.h"
#include "rendezvous/cluster/head/head_table.h"

namespace hlaunch {

// Returns true if the job has not changed since the version that the asker has seen, so that the
// answer can wait for a change. Returns false for a user who may not ask and for an unknown job:
// these questions are answered at once.
bool IsSeen(const HeadTable& table, const ClusterUser& user, const JobQuestion& question);

// Checks that the user may ask, then answers. Handles all verbs but `log` and `token`. Answers
// `job` at once, without waiting for a change.
//
// Errors:
//   PermissionDenied, Unimplemented - as MayAsk.
//   InvalidArgument - the question is wrong; the message names the field.
//   NotFound - there is no such job or host.
//   FailedPrecondition - the job has no rendezvous (now), or no hosts here could ever run it.
//   ResourceExhausted - the user or the cluster has too many jobs.
absl::StatusOr<nlohmann::json> AnswerUser(HeadTable& table, const ClusterUser& user,
                                          absl::string_view verb, const nlohmann::json& body,
                                          HeadTime t);

// Returns the host that has the log that the user asks for.
//
// Errors:
//   PermissionDenied, InvalidArgument, NotFound - as above.
//   FailedPrecondition - the job has not started yet.
//   Unavailable - that host is away; the message says since when.
absl::StatusOr<std::string> HostOfLog(const HeadTable& table, const ClusterUser& user,
                                      const LogQuestion& question);

}  // namespace hlaunch
