// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/values/job_record.h"

// The content of one job's file in the journal: a line for people, with the format's version, a
// checksum and the length, then a JobRecord of journal.proto. Pure.

namespace hlaunch {

std::string EncodeRecord(const JobRecord& record);

// Errors:
//   FailedPrecondition - another version of hlaunch wrote it; the message names its format.
//   DataLoss - the content is torn, damaged or foreign.
absl::StatusOr<JobRecord> DecodeRecord(absl::string_view content);

// Returns the name of the job's file. It is safe for any job id, has at most 255 bytes, and is
// readable if the id is.
std::string RecordFileName(absl::string_view job_id);
inline constexpr char kRecordSuffix[] = ".job";

}  // namespace hlaunch
