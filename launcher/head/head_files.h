// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/head/head_record.h"
#include "rendezvous/head/head_table.h"
#include "rendezvous/joining/trust_folder.h"

// What the head keeps in its folder beside what it proves itself with: cluster.json, of the hosts,
// and job-N.json of each job.

namespace hlaunch {

// Removes what was being written when the head was killed.
//
// Errors:
//   FailedPrecondition - a file cannot be read, or is none; the message names it. Nothing is left
//       out, since a job that nobody knows would be ended on its hosts.
absl::StatusOr<HeadRecord> ReadHeadRecord(const TrustFolder& folder);

// Writes what has changed, so that it is on the disk afterwards. Whichever of it is there when it
// is killed in between, what was decided before is found, and what has been told to nobody yet is
// decided again.
//
// Errors:
//   Unavailable - a file could not be written.
absl::Status WriteChanges(const TrustFolder& folder, const HeadChanges& changes,
                          const HeadTable& table);

}  // namespace hlaunch
