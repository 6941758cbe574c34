// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/cluster/head/head_record.h"
#include "rendezvous/cluster/head/head_table.h"
#include "rendezvous/cluster/membership/trust_folder.h"

// The files that the head keeps in its folder besides its keys: cluster.json with the hosts, and
// job-N.json for each job.

namespace hlaunch {

// Reads the head's files. Removes drafts that a killed head has left.
//
// Errors:
//   FailedPrecondition - a file cannot be read or has wrong content; the message names it. No file
//       is skipped, since hosts would end a job that the head does not know.
absl::StatusOr<HeadRecord> ReadHeadRecord(const TrustFolder& folder);

// Writes what has changed. It is on the disk when this returns. If the head is killed in between,
// any of these files may be new. Decisions made before are found all the same, and decisions that
// were not told to any host or user yet are made again.
//
// Errors:
//   Unavailable - a file could not be written.
absl::Status WriteChanges(const TrustFolder& folder, const HeadChanges& changes,
                          const HeadTable& table);

}  // namespace hlaunch
