// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The type of an element. kByte has no arithmetic: such bytes are only moved.
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

// How elements are reduced to one. kAvg is the sum divided by the world size; kPremulSum is the sum
// of elements that were multiplied by a factor first.
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
  kSend,  // A message from one rank to another with a tag; also its receive.
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

// The part of a rank's call that must be the same at all ranks. It is sent with every message, so
// that two ranks that make different calls find out and can show both. A value.
struct Call {
  Verb verb = Verb::kSend;
  DataType type = DataType::kByte;
  ReduceOp op = ReduceOp::kNone;
  uint8_t unused = 0;
  Rank root = 0;       // 0 for a verb without a root.
  uint64_t count = 0;  // The number of elements; 0 where it may differ between ranks.

  bool operator==(const Call&) const = default;
};

size_t ElementSize(DataType type);
absl::string_view Name(DataType type);  // "float32"
absl::string_view Name(ReduceOp op);    // "SUM"
absl::string_view Name(Verb verb);      // "all_reduce"

// Returns "all_reduce(1024 x float32, SUM)". `call` may come from another process and be nonsense.
std::string Text(const Call& call);

}  // namespace hlaunch
