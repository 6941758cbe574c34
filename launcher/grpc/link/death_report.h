// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// The command with which a keeper reports the death of its node; see NodeLink::DeathReport.
inline constexpr char kDeathReportWord[] = "--death-report";

// The command with which a keeper reports this node's death to a rendezvous at `places`.
NodeLink::DeathReport DeathReportFor(const JobSpec& spec, const std::string& places, uint16_t port,
                                     const NodeInfo& info);

// Returns what tells `others` that this node is dead. Whoever leads them, or will, has then heard
// it.
NodeLink::TellDeath DeathOf(const VoterMembers& others, const Trust& trust, const NodeInfo& info,
                            const std::string& why);

// Reports the death of a node to the rendezvous. Returns the exit code. Requires: the command line
// begins with kDeathReportWord.
int SendDeathReport(int argc, char** argv);

}  // namespace hlaunch
