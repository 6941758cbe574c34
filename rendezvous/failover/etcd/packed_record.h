// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/values/job_record.h"

// A job's record as etcd stores it: the content of the journal's file (journal_format.h),
// compressed by zlib and without duplicate data, since etcd accepts no request of more than 1.5
// MiB. Pure.

namespace hlaunch {

std::string PackRecord(const JobRecord& record);

// Errors: as DecodeRecord.
absl::StatusOr<JobRecord> UnpackRecord(absl::string_view packed);

}  // namespace hlaunch
