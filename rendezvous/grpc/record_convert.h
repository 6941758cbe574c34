// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "hlaunch/v1/journal.pb.h"
#include "rendezvous/round/job_record.h"

// Between the plain values of rendezvous/round/job_record.h and the messages of journal.proto, as
// convert.h does it for job.proto. These two functions are the only places that name each field of
// a record; a test fills every field of the message and finds it again after a restart.

namespace hlaunch {

v1::JobRecord ToProto(const JobRecord& record);

// Errors:
//   FailedPrecondition - a node in it speaks another protocol.
//   InvalidArgument - a field is out of its range; the message names it.
absl::StatusOr<JobRecord> FromProto(const v1::JobRecord& record);

}  // namespace hlaunch
