// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/limits.h"

namespace hlaunch {

// Names one state of one job's record; two of them are equal or not, and that is all they tell.
// 0: there is no record.
using RecordVersion = uint64_t;

struct KeptRecord {
  JobRecord record;
  RecordVersion version = 0;
};

// The records of a service's jobs in a place that outlives the service: one for each job, replaced
// as a whole. Whoever has a keeper leads: nobody else changes a record there until this one is
// destroyed or has lost. Whoever has lost decides nothing more and tells nobody anything.
//
// Thread-safe as long as calls for one job do not overlap. Implementations must pass
// tests/rendezvous/record_keeper_contract.h.
class RecordKeeper {
 public:
  virtual ~RecordKeeper() = default;

  struct Listed {
    std::vector<KeptRecord> records;
    std::vector<std::string> warnings;  // One line each, for people: a record that is damaged.
  };

  // All that is kept. To be called before the first Keep.
  //
  // Errors:
  //   Aborted - it does not lead any more.
  //   FailedPrecondition - a record is of another version; the message says what to do.
  //   others - the place or a record cannot be read.
  virtual absl::StatusOr<Listed> List() = 0;

  // Keeps `record` in the place of what was kept of that job, which is `expected`, and returns its
  // version; forgets the job if it is over and has no members left, and returns 0. What it returned
  // is there after the death of this process and of this host. A Keep that failed has either
  // happened or not, and may be tried again with the same `expected`, also for a newer record.
  //
  // Errors, which name the place:
  //   Aborted - lost: it does not lead any more, or another changed the record. Nothing was kept.
  //   ResourceExhausted - the place is full.
  //   InvalidArgument - the record is too large for it.
  //   Unavailable and others - the place cannot be reached, or as the kernel says.
  virtual absl::StatusOr<RecordVersion> Keep(const JobRecord& record, RecordVersion expected) = 0;

  // Nobody else leads before that; may be put off from call to call. Once it is past, it has lost.
  virtual Instant LeadsUntil() const = 0;

  // Whether another process may take over from what is kept while this one lives. Then what could
  // not be kept must not be told.
  virtual bool shared() const = 0;

  // The record of a job of so many nodes fits for certain; no job may have more.
  virtual int max_nodes() const { return kMaxNodes; }

  // For people: "/var/lib/hlaunch".
  virtual std::string place() const = 0;
};

}  // namespace hlaunch
