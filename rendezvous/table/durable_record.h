// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <utility>

#include "rendezvous/round/job_record.h"

namespace hlaunch {

// The durable state of one job, and a number that grows with each of its decisions. It is read
// through -> and *, and there is no other way to change it than these two.
//
// Its `members` are empty: each is a part of its Seat in Membership.
//
// Belongs to the thread of its RoundTable.
class DurableRecord {
 public:
  explicit DurableRecord(JobRecord record) : record_(std::move(record)) {}
  DurableRecord(const DurableRecord&) = delete;  // Others hold references to it.
  DurableRecord& operator=(const DurableRecord&) = delete;

  const JobRecord& operator*() const { return record_; }
  const JobRecord* operator->() const { return &record_; }

  // The record, for a decision: it must be kept before any node is told what follows from it.
  JobRecord& Change() {
    ++version_;
    return record_;
  }
  // The record, for what agents would tell again after a restart, or what time alone brings about:
  // it is kept together with the next decision.
  JobRecord& Note() { return record_; }

  uint64_t version() const { return version_; }

 private:
  JobRecord record_;
  uint64_t version_ = 0;
};

}  // namespace hlaunch
