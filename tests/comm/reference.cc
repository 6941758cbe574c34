// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/comm/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "comm/reduce/reduce_kernels.h"

namespace hlaunch {
namespace {

template <typename T>
T At(const Elements& elements, size_t i) {
  T value;
  std::memcpy(&value, elements.bytes.data() + i * sizeof value, sizeof value);
  return value;
}

template <typename T>
void Put(Elements* elements, size_t i, T value) {
  std::memcpy(elements->bytes.data() + i * sizeof value, &value, sizeof value);
}

// The relative size of the smallest step, and the least number with full precision.
struct Precision {
  double step, least;
};
Precision PrecisionOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {std::ldexp(1, -11), std::ldexp(1, -14)};
    case DataType::kBfloat16:
      return {std::ldexp(1, -8), std::ldexp(1, -126)};
    case DataType::kFloat32:
      return {std::ldexp(1, -24), std::ldexp(1, -126)};
    default:
      return {std::ldexp(1, -53), std::ldexp(1, -1022)};
  }
}

}  // namespace

bool IsFloat(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

Elements::Elements(DataType type_in, size_t count)
    : type(type_in), bytes(count * ElementSize(type_in)) {}

double Elements::Float(size_t i) const {
  if (type == DataType::kFloat32) return At<float>(*this, i);
  if (type == DataType::kFloat64) return At<double>(*this, i);
  float wide;
  Widen(type, reinterpret_cast<std::byte*>(&wide), bytes.data() + 2 * i, 1);
  return wide;
}

int64_t Elements::Integer(size_t i) const {
  switch (type) {
    case DataType::kInt8:
      return At<int8_t>(*this, i);
    case DataType::kInt32:
      return At<int32_t>(*this, i);
    case DataType::kInt64:
      return At<int64_t>(*this, i);
    default:
      return At<uint8_t>(*this, i);
  }
}

void Elements::SetFloat(size_t i, double value) {
  if (type == DataType::kFloat32) return Put(this, i, static_cast<float>(value));
  if (type == DataType::kFloat64) return Put(this, i, value);
  const auto wide = static_cast<float>(value);
  Narrow(type, bytes.data() + 2 * i, reinterpret_cast<const std::byte*>(&wide), 1);
}

void Elements::SetInteger(size_t i, int64_t value) {
  switch (type) {
    case DataType::kInt32:
      return Put(this, i, static_cast<int32_t>(value));
    case DataType::kInt64:
      return Put(this, i, value);
    case DataType::kBool:
      return Put(this, i, static_cast<uint8_t>(value != 0));
    default:
      return Put(this, i, static_cast<uint8_t>(value));
  }
}

Elements Input(DataType type, ReduceOp op, size_t count, int rank, int seed) {
  Elements elements(type, count);
  uint64_t state = (static_cast<uint64_t>(rank) << 32) + seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = state >> 33;
    if (!IsFloat(type)) {
      elements.SetInteger(i, type == DataType::kBool ? random & 1 : static_cast<int64_t>(random));
    } else {
      const double unit = random / 2147483648.0;  // 0 … 1
      elements.SetFloat(i, op == ReduceOp::kProduct ? 0.75 + unit / 2 : 8 * unit - 4);
    }
  }
  return elements;
}

namespace {

int64_t Reduced(ReduceOp op, DataType type, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (type == DataType::kBool) {
    if (op == ReduceOp::kSum || op == ReduceOp::kMax) return a | b;
    if (op == ReduceOp::kProduct || op == ReduceOp::kMin) return a & b;
  }
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<int64_t>(x + y);
    case ReduceOp::kProduct:
      return static_cast<int64_t>(x * y);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBand:
      return a & b;
    case ReduceOp::kBor:
      return a | b;
    default:
      return a ^ b;
  }
}

std::string FloatDifference(const Elements& got, const std::vector<Elements>& inputs, ReduceOp op,
                            const std::vector<double>& factors, size_t i) {
  double want = 0, magnitude = 0;
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    double value = inputs[rank].Float(i);
    if (op == ReduceOp::kPremulSum) value *= factors[rank];
    if (rank == 0) {
      want = value;
    } else if (op == ReduceOp::kMin) {
      want = std::min(want, value);
    } else if (op == ReduceOp::kMax) {
      want = std::max(want, value);
    } else if (op == ReduceOp::kProduct) {
      want *= value;
    } else {
      want += value;
    }
    magnitude += std::fabs(value);
  }
  if (op == ReduceOp::kAvg) {
    want /= static_cast<double>(inputs.size());
    magnitude /= static_cast<double>(inputs.size());
  }
  if (op == ReduceOp::kProduct) magnitude = std::fabs(want);
  // Allows one rounding to the type at the end and one for each factor's product. All others have
  // the precision of float32 or better.
  const Precision precision = PrecisionOf(got.type);
  const double fine = std::max(std::ldexp(1, -53), std::min(precision.step, std::ldexp(1, -24)));
  double slack = precision.step * (std::fabs(want) + precision.least) +
                 2 * fine * magnitude * static_cast<double>(inputs.size());
  if (op == ReduceOp::kPremulSum) slack += precision.step * magnitude;
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) slack = 0;
  if (std::fabs(got.Float(i) - want) <= slack) return "";
  return absl::StrCat("element ", i, " is ", got.Float(i), " instead of ", want);
}

}  // namespace

std::string Difference(const Elements& got, const std::vector<Elements>& inputs, ReduceOp op,
                       const std::vector<double>& factors) {
  for (size_t i = 0; i < got.count(); ++i) {
    if (IsFloat(got.type)) {
      if (std::string text = FloatDifference(got, inputs, op, factors, i); !text.empty()) {
        return text;
      }
      continue;
    }
    int64_t want = inputs[0].Integer(i);
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      want = Reduced(op, got.type, want, inputs[rank].Integer(i));
    }
    Elements wrapped(got.type, 1);
    wrapped.SetInteger(0, want);
    if (wrapped.Integer(0) != got.Integer(i)) {
      return absl::StrCat("element ", i, " is ", got.Integer(i), " instead of ",
                          wrapped.Integer(0));
    }
  }
  return "";
}

}  // namespace hlaunch
