// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/stacks_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/report/query/who_answered.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"

namespace hlaunch {

std::vector<SharedStack> TakeStacks(JobAnswer& answer) {
  std::vector<SharedStack> all;
  for (NodeWord& node : answer.nodes) {
    if (!node.problem.empty()) continue;
    auto told = ParseStacks(node.text);
    if (!told) {
      node.problem = "has an answer that cannot be read";
      continue;
    }
    for (SharedStack& stack : *told) {
      std::erase_if(stack.ranks, [&node](Rank rank) {
        return rank < node.first_rank || rank >= node.first_rank + node.nproc;
      });
      if (!stack.ranks.empty()) all.push_back(std::move(stack));
    }
  }
  return MergeStacks(std::move(all));
}

std::string StackListText(const std::string& job_id, const JobAnswer& answer,
                          const std::vector<SharedStack>& stacks) {
  std::string text = HeadOf(job_id, answer);
  for (const SharedStack& stack : stacks) {
    if (stack.frames.empty()) continue;
    absl::StrAppend(&text, "\n", NameOf(stack.ranks, answer), ":\n");
    for (const std::string& frame : stack.frames) absl::StrAppend(&text, "  ", frame, "\n");
  }
  std::string without;
  for (const SharedStack& stack : stacks) {
    if (!stack.frames.empty()) continue;
    absl::StrAppend(&without, NameOf(stack.ranks, answer), ": no stack: ", stack.problem, "\n");
  }
  absl::StrAppend(&without, SilentText(answer));
  return absl::StrCat(text, without.empty() ? "" : "\n", without);
}

std::string StackListJson(const std::string& job_id, const JobAnswer& answer,
                          const std::vector<SharedStack>& stacks) {
  nlohmann::ordered_json json = HeadJson(job_id, answer);
  json["stacks"] = nlohmann::ordered_json::array();
  for (const SharedStack& stack : stacks) {
    nlohmann::ordered_json one = {{"ranks", stack.ranks}, {"frames", stack.frames}};
    one["problem"] = nullptr;
    if (stack.frames.empty()) one["problem"] = stack.problem;
    json["stacks"].push_back(std::move(one));
  }
  return JsonText(json);
}

}  // namespace hlaunch
