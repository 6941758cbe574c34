// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "rendezvous/round/round.h"
#include "rendezvous/table/job_words.h"
#include "rendezvous/table/membership.h"

// What a node is to do. Pure: made of where the job stands.

namespace hlaunch {

// The part of a node in the latest round, as it is told of it. O(1), O(n) for node rank 0.
Assignment AssignmentOf(const TableView& job, int node_rank, Rank first_rank);

Directive DirectiveOf(const TableView& job, const Seat& seat);

}  // namespace hlaunch
