// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {

// Names one state of one job's record. Two versions are equal or not, and have no other meaning. 0
// if there is no record.
using RecordVersion = uint64_t;

struct KeptRecord {
  JobRecord record;
  RecordVersion version = 0;
};

// The records of a service's jobs in a place that outlives the service: one record for each job,
// replaced as a whole. The process that has a keeper leads: no other process changes a record there
// until the keeper is destroyed or has lost. A process whose keeper has lost decides nothing more
// and tells no node anything.
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

  // Returns all that is kept. Called before the first Keep.
  //
  // Errors:
  //   Aborted - it does not lead any more.
  //   FailedPrecondition - a record is of another version; the message says what to do.
  //   others - the place or a record cannot be read.
  virtual absl::StatusOr<Listed> List() = 0;

  // Replaces the kept record of that job, whose version is `expected`, by `record`, and returns the
  // version of `record`. If the job is over and has no members left, forgets the job and returns 0.
  // A record whose version was returned survives the death of this process and of this host. A Keep
  // that failed has either happened or not; it may be tried again with the same `expected`, also
  // with a newer record.
  //
  // Errors, which name the place:
  //   Aborted - lost: it does not lead any more, or another process changed the record. Nothing was
  //     kept.
  //   ResourceExhausted - the place is full.
  //   InvalidArgument - the record is too large for the place.
  //   Unavailable and others - the place cannot be reached, or as the kernel says.
  virtual absl::StatusOr<RecordVersion> Keep(const JobRecord& record, RecordVersion expected) = 0;

  // Returns the time until which no other process leads; a later call may return a later time. Once
  // it is past, the keeper has lost.
  virtual Instant LeadsUntil() const = 0;

  // Returns whether another process may take over from what is kept while this one lives. Then no
  // node may be told what could not be kept.
  virtual bool shared() const = 0;

  // Returns the number of nodes up to which a job's record fits for certain; no job may have more.
  virtual int max_nodes() const { return kMaxNodes; }

  // Returns the place, for people: "/var/lib/hlaunch".
  virtual std::string place() const = 0;
};

}  // namespace hlaunch
