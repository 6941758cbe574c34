// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <span>

#include "proto/contract/ids.h"

// Integers for each rank whose sum is known without adding them up. Nodes that add them together
// prove that each of them computes, and moves data, exactly. Pure.

namespace hlaunch {

// Fills `terms` with the numbers of `rank`. Each seed gives other numbers.
void FillTerms(Rank rank, uint64_t seed, std::span<int64_t> terms);

// True if `sum` is the sum of the terms of `ranks`.
bool IsSumOf(std::span<const Rank> ranks, uint64_t seed, std::span<const int64_t> sum);

// A checksum of a sum. Two nodes compare their checksums to learn whether they have the same sum.
uint64_t DigestOf(std::span<const int64_t> sum);
uint64_t DigestOfSum(std::span<const Rank> ranks, uint64_t seed, size_t length);

}  // namespace hlaunch
