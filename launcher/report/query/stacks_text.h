// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/watch/query/merge_stacks.h"
#include "rendezvous/job/question.h"

// The output of `hlaunch stacks`. Pure. Its input comes from strangers.

namespace hlaunch {

// Returns the merged stacks that the nodes reported of their own ranks; stacks of other ranks are
// dropped. Sets the problem of a node whose text cannot be parsed.
std::vector<SharedStack> TakeStacks(JobAnswer& answer);

// Shows each stack once, the innermost frame first; then the ranks without a stack, and the nodes
// that have not answered.
std::string StackListText(const std::string& job_id, const JobAnswer& answer,
                          const std::vector<SharedStack>& stacks);

// The same as JSON.
std::string StackListJson(const std::string& job_id, const JobAnswer& answer,
                          const std::vector<SharedStack>& stacks);

}  // namespace hlaunch
