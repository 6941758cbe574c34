// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/call/call.h"

// The expected results of collectives, computed slowly in another way: element by element, floats
// as double, integers in 64 bits.

namespace hlaunch {

// An array of elements of one type.
struct Elements {
  DataType type;
  std::vector<std::byte> bytes;

  Elements(DataType type, size_t count);
  size_t count() const { return bytes.size() / ElementSize(type); }
  double Float(size_t i) const;
  int64_t Integer(size_t i) const;
  // Store `value`, rounded or wrapped to the type.
  void SetFloat(size_t i, double value);
  void SetInteger(size_t i, int64_t value);
};

bool IsFloat(DataType type);

// The `count` input elements of `rank`. Each `seed` gives others. For products they are near 1.
Elements Input(DataType type, ReduceOp op, size_t count, int rank, int seed);

// "" if `got` is the reduction of `inputs` within the precision of the type; otherwise says where
// it differs. `factors` are those of kPremulSum, one for each rank.
std::string Difference(const Elements& got, const std::vector<Elements>& inputs, ReduceOp op,
                       const std::vector<double>& factors);

}  // namespace hlaunch
