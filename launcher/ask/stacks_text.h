// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/ask/merge_stacks.h"
#include "rendezvous/job/question.h"

// What `hlaunch stacks` prints. Pure: made of what strangers say.

namespace hlaunch {

// What the nodes have told of their ranks, and of no others, merged; a node whose text is none has
// a problem from now on.
std::vector<SharedStack> TakeStacks(JobAnswer& answer);

// Each stack once, the innermost frame first; then who has none, and who has not answered.
std::string StackListText(const std::string& job_id, const JobAnswer& answer,
                          const std::vector<SharedStack>& stacks);

// The same for programs.
std::string StackListJson(const std::string& job_id, const JobAnswer& answer,
                          const std::vector<SharedStack>& stacks);

}  // namespace hlaunch
