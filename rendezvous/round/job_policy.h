// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/round/round.h"

namespace hlaunch {

// "off", "quick", "full"; "warn", "exclude", "fail"; "end", "wait", "continue": as on the command
// line.
const char* PreflightName(Preflight preflight);
const char* ActionName(PreflightAction action);
const char* HostLossName(HostLoss loss);
const char* OnJoinName(OnJoin on_join);  // "restart", "next-round", "ignore"
const char* OnLossName(OnLoss on_loss);  // "shrink", "wait", "fail"

// Where the policy that holds for the job differs from what one node was told, in the words of the
// command line: "--max-restarts 3 (here 0), --loss-limit 30 (here 60)". Empty if it does not. Pure.
std::string DescribeDifferences(const JobPolicy& holds, const JobPolicy& here);

}  // namespace hlaunch
