// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

// Stacks of many ranks, of which most are the same. Pure.

namespace hlaunch {

// Where the main threads of some ranks stand. A value.
struct SharedStack {
  std::vector<Rank> ranks;          // In their order.
  std::vector<std::string> frames;  // The innermost first: "load (loader.py:88)".
  std::string problem;              // Why there are none, in one line; empty: there are.
};

// Each stack once, with its ranks: the rarest first, since that is where the odd one is. Addresses
// in frames do not tell stacks apart, and are gone.
std::vector<SharedStack> MergeStacks(std::vector<SharedStack> stacks);

// How they travel. Where that is longer than `max_bytes` each has its innermost frames alone;
// empty: even that is too long.
std::string StacksText(std::vector<SharedStack> stacks, size_t max_bytes);

// Unset: `text` is none. What is in it is bounded and may be shown on a terminal.
std::optional<std::vector<SharedStack>> ParseStacks(absl::string_view text);

}  // namespace hlaunch
