// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/cluster/head/head_job.h"

// Decides who may ask what of the head. No other place decides it. All is pure.

namespace hlaunch {

// Returns true if the job is the user's own. Name and uid must match, since hosts may give the same
// uid to different people.
bool IsOwn(const HeadJob& job, const ClusterUser& user);

// Returns true if the user may see the job's command line: its own user and admins may.
bool MaySeeWords(const HeadJob& job, const ClusterUser& user);

// Checks that `user` may ask `verb`. `job` is the job that the question is about; null if it is
// about none or the job does not exist.
//
// Errors:
//   PermissionDenied - the user may not; the message says who may.
//   Unimplemented - there is no such question.
absl::Status MayAsk(absl::string_view verb, const ClusterUser& user, const HeadJob* job);

}  // namespace hlaunch
