// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/head/head_job.h"

// Who may ask what of the head. This is the one place that decides it. All is pure.

namespace hlaunch {

// Whether it is his own: by name and uid, since hosts may give one uid to different people.
bool IsOwn(const HeadJob& job, const ClusterUser& user);

// Whether he sees its command line: its user and admins do.
bool MaySeeWords(const HeadJob& job, const ClusterUser& user);

// Whether `user` may ask `verb`. `job`: which it is about; null: none, or one that is not there.
//
// Errors:
//   PermissionDenied - he may not; the message says who may.
//   Unimplemented - there is no such question.
absl::Status MayAsk(absl::string_view verb, const ClusterUser& user, const HeadJob* job);

}  // namespace hlaunch
