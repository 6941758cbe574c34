// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/round.h"
#include "rendezvous/table/membership.h"

// What a node may say: whether it fits the job it wants to join, and whether its word is possible
// after what it was told. Pure.

namespace hlaunch {

// How far a node is within one round: a phase with a higher number follows one with a lower.
int PhaseOrder(NodePhase phase);

// Whether `info` makes sense, in the job of `record`.
//
// Errors:
//   InvalidArgument - nonsense in `info`.
//   FailedPrecondition - it means another job.
absl::Status CheckInfo(const JobRecord& record, const NodeInfo& info);

// Whether a node that is new fits a job with `here` nodes, whose policy `set_by` has set.
//
// Errors:
//   FailedPrecondition - it does not, or the job is over or full.
//   OutOfRange - it comes from a round in which nobody knows it.
//   InvalidArgument - its update is impossible.
absl::Status CheckFits(const JobRecord& record, absl::string_view set_by, int here,
                       const NodeInfo& info, const NodeUpdate& update);

// Whether `seat`'s node can say `update`. Only what no order of messages can bring about is an
// error.
//
// Errors:
//   InvalidArgument - it cannot.
//   Aborted - it comes from a round that this rendezvous never told it, because its record is
//   older.
absl::Status CheckPossible(const JobRecord& record, const Seat& seat, const NodeUpdate& update);

}  // namespace hlaunch
