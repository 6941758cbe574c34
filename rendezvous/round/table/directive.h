// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "rendezvous/round/table/job_words.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/round.h"

// Computes what a node must do. Pure: depends only on the state of the job.

namespace hlaunch {

// Returns a node's part in the latest round, as the node is told. O(1); O(n) for node rank 0.
Assignment AssignmentOf(const TableView& job, int node_rank, Rank first_rank);

Directive DirectiveOf(const TableView& job, const Seat& seat);

}  // namespace hlaunch
