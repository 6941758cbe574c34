// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/round.h"

// Checks what a node says: whether it fits the job that it wants to join, and whether its update is
// possible after what it was told. Pure.

namespace hlaunch {

// Returns how far a node is within one round: a phase with a higher number follows one with a lower
// number.
int PhaseOrder(NodePhase phase);

// Returns whether `update` is older than what the node of `seat` said last, or contradicts that.
// Then only its failures may be new.
bool IsOvertaken(const Seat& seat, const NodeUpdate& update);

// Checks that `info` makes sense in the job of `record`.
//
// Errors:
//   InvalidArgument - nonsense in `info`.
//   FailedPrecondition - `info` names another job.
absl::Status CheckInfo(const JobRecord& record, const NodeInfo& info);

// Checks that a new node fits a job that has `here` nodes and whose policy came from `set_by`.
//
// Errors:
//   FailedPrecondition - the node does not fit, or the job is over or full.
//   OutOfRange - the node comes from a round in which this rendezvous does not know it.
//   InvalidArgument - the node's update is impossible.
absl::Status CheckFits(const JobRecord& record, absl::string_view set_by, int here,
                       const NodeInfo& info, const NodeUpdate& update);

// Checks that the node of `seat` can say `update`. Only an update that no order of messages can
// cause is an error.
//
// Errors:
//   InvalidArgument - the node cannot say that.
//   Aborted - the update is of a round that this rendezvous never told the node, because the
//     rendezvous' record is older.
//   older.
absl::Status CheckPossible(const JobRecord& record, const Seat& seat, const NodeUpdate& update);

}  // namespace hlaunch
