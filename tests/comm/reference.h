// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/call/call.h"

// What collectives ought to give, computed slowly and in another way: element by element, floats in
// double, integers in 64 bits.

namespace hlaunch {

// An array of elements of one type.
struct Elements {
  DataType type;
  std::vector<std::byte> bytes;

  Elements(DataType type, size_t count);
  size_t count() const { return bytes.size() / ElementSize(type); }
  double Float(size_t i) const;
  int64_t Integer(size_t i) const;
  // Rounded, or wrapped, to the type.
  void SetFloat(size_t i, double value);
  void SetInteger(size_t i, int64_t value);
};

bool IsFloat(DataType type);

// `count` elements as rank `rank` has them; `seed` tells calls apart. For products they are near 1.
Elements Input(DataType type, ReduceOp op, size_t count, int rank, int seed);

// "" if `got` is the reduction of `inputs` as far as the type can be exact, else where it is not.
// `factors` as kPremulSum has them, one for each rank.
std::string Difference(const Elements& got, const std::vector<Elements>& inputs, ReduceOp op,
                       const std::vector<double>& factors);

}  // namespace hlaunch
