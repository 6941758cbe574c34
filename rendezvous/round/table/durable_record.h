// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <utility>

#include "rendezvous/round/values/job_record.h"

namespace hlaunch {

// The durable state of one job, and a number that grows with each decision. It is read through ->
// and *, and changed only through Change and Note.
//
// Its `members` are empty: each member is a part of its Seat in Membership.
//
// Belongs to the thread of its RoundTable.
class DurableRecord {
 public:
  explicit DurableRecord(JobRecord record) : record_(std::move(record)) {}
  DurableRecord(const DurableRecord&) = delete;  // Others hold references to it.
  DurableRecord& operator=(const DurableRecord&) = delete;

  const JobRecord& operator*() const { return record_; }
  const JobRecord* operator->() const { return &record_; }

  // Returns the record, to write a decision: it must be kept before any node is told what follows
  // from the decision.
  JobRecord& Change() {
    ++version_;
    return record_;
  }
  // Returns the record, to write what agents would tell again after a restart, or what only time
  // causes: that is kept together with the next decision.
  JobRecord& Note() { return record_; }

  uint64_t version() const { return version_; }

 private:
  JobRecord record_;
  uint64_t version_ = 0;
};

}  // namespace hlaunch
