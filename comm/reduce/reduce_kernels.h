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

// Element-wise arithmetic on memory. The source is written once and compiled for each width of
// vectors; the width is chosen at run time. The same operands in the same order give the same bits
// on every machine: there is no fused multiply-add, and 16-bit floats are converted by integer
// arithmetic and rounded to nearest, ties to even. Thread-safe.

// Checks that `op` exists for elements of `type`. There are no bitwise ops for floats, and no AVG
// and PREMUL_SUM for integers; for bool SUM and MAX are "or", PRODUCT and MIN are "and".
//
// Errors:
//   InvalidArgument - it does not exist; the message names both.
absl::Status CheckReduction(ReduceOp op, DataType type);

// into[i] = sources[0][i] op sources[1][i] op …, in that order. float16 and bfloat16 are rounded
// once, at the end; integers wrap; MIN and MAX of a NaN are NaN. kAvg and kPremulSum only add: see
// Multiply. The result of floats is divided by `divisor` before it is rounded.
//
// Requires: CheckReduction holds; `into` is one of the sources or overlaps none; sources is not
// empty. Nothing need be aligned.
void Reduce(DataType type, ReduceOp op, std::byte* into, std::span<const std::byte* const> sources,
            size_t count, double divisor = 1);

// into[i] = from[i] * factor, or / divisor; both may be the same memory.
//
// Requires: `type` is a float.
void Multiply(DataType type, std::byte* into, const std::byte* from, size_t count, double factor);
void Divide(DataType type, std::byte* into, const std::byte* from, size_t count, double divisor);

// Converts from `type` to float32 and back, rounded once; `into` and `from` do not overlap.
//
// Requires: `type` is float16 or bfloat16.
void Widen(DataType type, std::byte* into, const std::byte* from, size_t count);
void Narrow(DataType type, std::byte* into, const std::byte* from, size_t count);

// Return the vectors in use, "avx512", "avx2" or "baseline", and those that this machine has.
// UseVectors chooses others, for tests and measurements; it is not thread-safe.
std::string VectorsInUse();
std::vector<std::string> UsableVectors();
void UseVectors(const std::string& name);

}  // namespace hlaunch
