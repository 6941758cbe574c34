// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/call/call.h"

namespace hlaunch {

// Element-wise arithmetic on plain memory: written once, compiled for each width of vectors, chosen
// at run time. The same operands in the same order give the same bits on every machine: there is no
// fused multiply-add, and the 16-bit floats are converted by integer arithmetic, with rounding to
// the nearest, ties to even. Thread-safe.

// Whether `op` means something for elements of `type`. Bitwise ops do not for floats; AVG and
// PREMUL_SUM do not for integers; for bool SUM and MAX are "or", PRODUCT and MIN "and".
//
// Errors:
//   InvalidArgument - it does not; the message names both.
absl::Status CheckReduction(ReduceOp op, DataType type);

// into[i] = sources[0][i] op sources[1][i] op …, in that order. float16 and bfloat16 are rounded
// once, at the end; integers wrap; MIN and MAX pass a NaN on. kAvg and kPremulSum add only: see
// Multiply. Of floats the result is divided by `divisor` before it is rounded.
//
// Requires: CheckReduction holds; `into` is one of the sources or overlaps none; sources is not
// empty. Nothing need be aligned.
void Reduce(DataType type, ReduceOp op, std::byte* into, std::span<const std::byte* const> sources,
            size_t count, double divisor = 1);

// into[i] = from[i] * factor, or / divisor; both may be the same place.
//
// Requires: `type` is a float.
void Multiply(DataType type, std::byte* into, const std::byte* from, size_t count, double factor);
void Divide(DataType type, std::byte* into, const std::byte* from, size_t count, double divisor);

// From `type` to float32 and back, rounded once; no place is both.
//
// Requires: `type` is float16 or bfloat16.
void Widen(DataType type, std::byte* into, const std::byte* from, size_t count);
void Narrow(DataType type, std::byte* into, const std::byte* from, size_t count);

// The vectors that are used here: "avx512", "avx2" or "baseline"; and those that could be. Choosing
// another is for tests and measurements; not thread-safe.
std::string VectorsInUse();
std::vector<std::string> UsableVectors();
void UseVectors(const std::string& name);

}  // namespace hlaunch
