// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

// Merges the stacks of many ranks, most of which are the same. Pure.

namespace hlaunch {

// A stack that the main threads of some ranks share. A value.
struct SharedStack {
  std::vector<Rank> ranks;          // In ascending order.
  std::vector<std::string> frames;  // The innermost first: "load (loader.py:88)".
  std::string problem;              // Why there are no frames, in one line; empty if there are.
};

// Returns each stack once, with its ranks; the rarest stack first, because the odd rank is usually
// there. Addresses in frames are replaced, so they do not tell stacks apart.
std::vector<SharedStack> MergeStacks(std::vector<SharedStack> stacks);

// The text in which stacks are sent. If it is longer than `max_bytes`, each stack keeps only its
// innermost frames; empty if even that is too long.
std::string StacksText(std::vector<SharedStack> stacks, size_t max_bytes);

// Parses such a text; unset if `text` is not one. The result is bounded and safe to show on a
// terminal.
std::optional<std::vector<SharedStack>> ParseStacks(absl::string_view text);

}  // namespace hlaunch
