// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The names as on the command line: "off", "quick", "full"; "warn", "exclude", "fail"; "end",
// "wait", "continue".
const char* PreflightName(Preflight preflight);
const char* ActionName(PreflightAction action);
const char* HostLossName(HostLoss loss);
const char* OnJoinName(OnJoin on_join);  // "restart", "next-round", "ignore"
const char* OnLossName(OnLoss on_loss);  // "shrink", "wait", "fail"

// Describes where the job's policy, `holds`, differs from what this node was given, in the words of
// the command line: "--max-restarts 3 (here 0), --loss-limit 30 (here 60)". Empty if it does not.
// Pure.
std::string DescribeDifferences(const JobPolicy& holds, const JobPolicy& here);

}  // namespace hlaunch
