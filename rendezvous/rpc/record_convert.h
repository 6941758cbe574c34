// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "hlaunch/v1/journal.pb.h"
#include "rendezvous/round/values/job_record.h"

// Converts between the plain values of rendezvous/round/values/job_record.h and the messages of
// journal.proto, as convert.h does for job.proto. Only these two functions name each field of a
// record. A test fills every field of the message and finds it again after a restart.

namespace hlaunch {

v1::JobRecord ToProto(const JobRecord& record);

// Errors:
//   FailedPrecondition - a node in it speaks another protocol.
//   InvalidArgument - a number is out of its range, or a member's rank is none of its round; or a
//       member is there twice, or belongs to another job.
absl::StatusOr<JobRecord> FromProto(const v1::JobRecord& record);

}  // namespace hlaunch
