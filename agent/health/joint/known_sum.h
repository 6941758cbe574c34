// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <span>

#include "proto/contract/ids.h"

// Whole numbers for each rank whose sum is known without adding them up: nodes that add them
// together prove that each of them computes, and moves data, exactly. Pure.

namespace hlaunch {

// What `rank` gives. Another seed, other numbers.
void FillTerms(Rank rank, uint64_t seed, std::span<int64_t> terms);

// Whether `sum` is the sum of the terms of `ranks`.
bool IsSumOf(std::span<const Rank> ranks, uint64_t seed, std::span<const int64_t> sum);

// A number that another has only of the same sum: what two nodes tell each other of theirs.
uint64_t DigestOf(std::span<const int64_t> sum);
uint64_t DigestOfSum(std::span<const Rank> ranks, uint64_t seed, size_t length);

}  // namespace hlaunch
