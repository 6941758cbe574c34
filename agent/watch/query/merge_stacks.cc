// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/query/merge_stacks.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "agent/watch/hang/json_words.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxRanks = 4096;  // Of one node.
constexpr size_t kMaxFrames = 64;
constexpr size_t kInnermost = 12;

// "0x7ffd12" becomes "0x..".
std::string WithoutAddresses(absl::string_view frame) {
  std::string clean;
  while (!frame.empty()) {
    const size_t at = frame.find("0x");
    clean += std::string(frame.substr(0, at));
    if (at == frame.npos) break;
    clean += "0x..";
    frame.remove_prefix(at + 2);
    while (!frame.empty() && absl::ascii_isxdigit(frame[0])) frame.remove_prefix(1);
  }
  return clean;
}

std::string Text(const std::vector<SharedStack>& stacks) {
  Json json = Json::array();
  for (const SharedStack& stack : stacks) {
    Json one = {{"r", RankList(stack.ranks)}};
    if (!stack.frames.empty()) one["f"] = stack.frames;
    if (!stack.problem.empty()) one["p"] = stack.problem;
    json.push_back(std::move(one));
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

SharedStack StackOf(const Json& json) {
  SharedStack stack;
  const Json& ranks = At(json, "r");
  if (ranks.is_string()) stack.ranks = ParseRankList(ranks.get_ref<const std::string&>());
  const Json& frames = At(json, "f");
  for (size_t i = 0; frames.is_array() && i < std::min(frames.size(), kMaxFrames); ++i) {
    stack.frames.push_back(WordOf(frames[i]));
  }
  stack.problem = WordOf(At(json, "p"));
  return stack;
}

}  // namespace

std::vector<SharedStack> MergeStacks(std::vector<SharedStack> stacks) {
  std::map<std::pair<std::vector<std::string>, std::string>, std::vector<Rank>> by_stack;
  for (SharedStack& stack : stacks) {
    for (std::string& frame : stack.frames) frame = WithoutAddresses(frame);
    std::vector<Rank>& ranks = by_stack[{std::move(stack.frames), std::move(stack.problem)}];
    ranks.insert(ranks.end(), stack.ranks.begin(), stack.ranks.end());
  }
  std::vector<SharedStack> merged;
  for (auto& [stack, ranks] : by_stack) {
    std::sort(ranks.begin(), ranks.end());
    merged.push_back({std::move(ranks), stack.first, stack.second});
  }
  std::sort(merged.begin(), merged.end(), [](const SharedStack& a, const SharedStack& b) {
    return std::make_tuple(a.ranks.size(), a.ranks) < std::make_tuple(b.ranks.size(), b.ranks);
  });
  return merged;
}

std::string StacksText(std::vector<SharedStack> stacks, size_t max_bytes) {
  std::string text = Text(stacks);
  if (text.size() <= max_bytes) return text;
  for (SharedStack& stack : stacks) {
    stack.frames.resize(std::min(stack.frames.size(), kInnermost));
  }
  text = Text(MergeStacks(std::move(stacks)));
  if (text.size() > max_bytes) text.clear();
  return text;
}

std::optional<std::vector<SharedStack>> ParseStacks(absl::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_array()) return std::nullopt;
  std::vector<SharedStack> stacks;
  size_t ranks = 0;
  for (const Json& one : json) {
    SharedStack stack = StackOf(one);
    ranks += std::max<size_t>(stack.ranks.size(), 1);
    if (ranks > kMaxRanks) break;
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

}  // namespace hlaunch
