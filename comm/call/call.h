// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// What an element is. kByte has no arithmetic: bytes that are only moved.
enum class DataType : uint8_t {
  kByte,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kInt8,
  kUint8,
  kInt32,
  kInt64,
  kBool,
};
inline constexpr int kDataTypes = 10;

// How elements become one. kAvg is the sum divided by the world size; kPremulSum the sum of
// elements that were multiplied by a factor first.
enum class ReduceOp : uint8_t {
  kNone,
  kSum,
  kAvg,
  kProduct,
  kMin,
  kMax,
  kBand,
  kBor,
  kBxor,
  kPremulSum
};
inline constexpr int kReduceOps = 10;

enum class Verb : uint8_t {
  kSend,  // Also its receive: one rank to another, told apart by tag.
  kBarrier,
  kBroadcast,
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
};

// What a rank calls, as far as the others must call the same: a value that goes with every
// message, so that two ranks that do not agree find out and can show both calls.
struct Call {
  Verb verb = Verb::kSend;
  DataType type = DataType::kByte;
  ReduceOp op = ReduceOp::kNone;
  uint8_t unused = 0;
  Rank root = 0;       // 0 where there is none.
  uint64_t count = 0;  // Elements; 0 where ranks may differ.

  bool operator==(const Call&) const = default;
};

size_t ElementSize(DataType type);
absl::string_view Name(DataType type);  // "float32"
absl::string_view Name(ReduceOp op);    // "SUM"
absl::string_view Name(Verb verb);      // "all_reduce"

// "all_reduce(1024 x float32, SUM)". Of a call that came over a comm, too.
std::string Text(const Call& call);

}  // namespace hlaunch
