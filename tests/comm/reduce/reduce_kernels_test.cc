// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/reduce/reduce_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                               DataType::kFloat64, DataType::kInt8,     DataType::kUint8,
                               DataType::kInt32,   DataType::kInt64,    DataType::kBool};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg,  ReduceOp::kProduct,
                             ReduceOp::kMin, ReduceOp::kMax,  ReduceOp::kBand,
                             ReduceOp::kBor, ReduceOp::kBxor, ReduceOp::kPremulSum};

// ---- A second, slow implementation of each type with doubles.

struct FloatFormat {
  int mantissa_bits, least_exponent;
  double largest;
};
constexpr FloatFormat kHalf{10, -14, 65504.0};
constexpr FloatFormat kBrain{7, -126, 3.3895313892515355e38};

double Decode16(const FloatFormat& format, uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> format.mantissa_bits;
  const int most = 0x7fff >> format.mantissa_bits;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == most) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  const double whole = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return sign * std::ldexp(whole + mantissa, std::max(exponent, 1) - 1 + format.least_exponent -
                                                 format.mantissa_bits);
}

// Rounds to the nearest number of the format, ties to even.
double RoundTo(const FloatFormat& format, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double step = std::ldexp(1, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(value / step) * step;
  return std::fabs(rounded) > format.largest ? std::copysign(INFINITY, value) : rounded;
}

template <typename T>
double As(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double Decode(DataType type, const std::byte* at) {
  switch (type) {
    case DataType::kFloat16:
      return Decode16(kHalf, static_cast<uint16_t>(As<uint16_t>(at)));
    case DataType::kBfloat16:
      return Decode16(kBrain, static_cast<uint16_t>(As<uint16_t>(at)));
    case DataType::kFloat32:
      return As<float>(at);
    case DataType::kFloat64:
      return As<double>(at);
    case DataType::kInt8:
      return As<int8_t>(at);
    case DataType::kInt32:
      return As<int32_t>(at);
    case DataType::kInt64:
      return As<int64_t>(at);
    default:
      return As<uint8_t>(at);
  }
}

bool IsFloat(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

// Rounds an intermediate result to the precision that the kernels keep.
double Intermediate(DataType type, double value) {
  if (type == DataType::kFloat64) return value;
  return IsFloat(type) ? static_cast<float>(value) : value;
}

double Round(DataType type, double value) {
  switch (type) {
    case DataType::kFloat16:
      return RoundTo(kHalf, value);
    case DataType::kBfloat16:
      return RoundTo(kBrain, value);
    case DataType::kInt8:
      return static_cast<int8_t>(static_cast<int64_t>(value));
    case DataType::kUint8:
      return static_cast<uint8_t>(static_cast<int64_t>(value));
    case DataType::kInt32:
      return static_cast<int32_t>(static_cast<int64_t>(value));
    case DataType::kBool:
      return value != 0;
    default:
      return value;
  }
}

int64_t Whole(double value) { return static_cast<int64_t>(value); }

double Combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBand:
      return static_cast<double>(Whole(a) & Whole(b));
    case ReduceOp::kBor:
      return static_cast<double>(Whole(a) | Whole(b));
    case ReduceOp::kBxor:
      return static_cast<double>(Whole(a) ^ Whole(b));
    default:
      return a + b;
  }
}

// Random bits, tame enough for the reference to be exact: no NaN, integers up to 2^12.
std::vector<std::byte> RandomElements(DataType type, size_t count, std::mt19937* random) {
  std::vector<std::byte> bytes(count * ElementSize(type) + 1);
  for (size_t i = 0; i < count; ++i) {
    std::byte* const at = bytes.data() + i * ElementSize(type);
    const uint64_t bits = (uint64_t{(*random)()} << 32) | (*random)();
    double value = static_cast<double>(static_cast<int64_t>(bits >> 51)) - 4096;
    if (type == DataType::kFloat32) {
      const float f = static_cast<float>(value / 7);
      std::memcpy(at, &f, 4);
    } else if (type == DataType::kFloat64) {
      value /= 7;
      std::memcpy(at, &value, 8);
    } else if (type == DataType::kInt32 || type == DataType::kInt64) {
      const auto whole = static_cast<int64_t>(value);
      std::memcpy(at, &whole, ElementSize(type));
    } else if (type == DataType::kBool) {
      at[0] = std::byte(bits & 1);
    } else {
      do {
        const uint32_t some = (*random)();
        std::memcpy(at, &some, ElementSize(type));
      } while (IsFloat(type) && !(std::fabs(Decode(type, at)) < 1e9));
    }
  }
  return bytes;
}

// In double, float32 sums and products of 16-bit floats are exact before they are rounded.
TEST(Reduce, AgreesWithArithmeticInDouble) {
  std::mt19937 random(1);
  const std::string before = VectorsInUse();
  for (const std::string& vectors : UsableVectors()) {
    UseVectors(vectors);
    for (const DataType type : kTypes) {
      for (const ReduceOp op : kOps) {
        if (!CheckReduction(op, type).ok()) continue;
        for (const size_t count : {0, 1, 7, 64, 1023, 1024, 1025, 3001}) {
          const int sources = 1 + static_cast<int>(random() % 4);
          std::vector<std::vector<std::byte>> data;
          std::vector<const std::byte*> at;
          for (int s = 0; s < sources; ++s) data.push_back(RandomElements(type, count, &random));
          for (const auto& source : data) at.push_back(source.data());
          std::vector<std::byte> result(count * ElementSize(type) + 1, std::byte{0x5a});
          Reduce(type, op, result.data(), at, count);
          for (size_t i = 0; i < count; ++i) {
            const size_t offset = i * ElementSize(type);
            double want = Decode(type, at[0] + offset);
            for (int s = 1; s < sources; ++s) {
              want = Combine(op, want, Decode(type, at[s] + offset));
              want = IsFloat(type) ? Intermediate(type, want) : Round(type, want);
            }
            ASSERT_EQ(Decode(type, result.data() + offset), Round(type, want))
                << vectors << ": " << Name(op) << " of " << sources << " x " << Name(type) << " at "
                << i << " of " << count;
          }
          EXPECT_EQ(result.back(), std::byte{0x5a}) << "wrote behind the end";
        }
      }
    }
  }
  UseVectors(before);
}

TEST(Reduce, TargetMayBeOneOfTheSources) {
  std::mt19937 random(2);
  for (const DataType type : kTypes) {
    const auto one = RandomElements(type, 2000, &random), two = RandomElements(type, 2000, &random);
    auto expected = one, in_place = two;
    const std::byte* apart[] = {one.data(), two.data()};
    const std::byte* together[] = {one.data(), in_place.data()};
    Reduce(type, ReduceOp::kSum, expected.data(), apart, 2000);
    Reduce(type, ReduceOp::kSum, in_place.data(), together, 2000);
    expected.pop_back();
    in_place.pop_back();
    EXPECT_EQ(expected, in_place) << Name(type);
  }
}

TEST(Reduce, EverySixteenBitFloatSurvives) {
  std::vector<uint16_t> all(65536), back(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  const std::byte* const source = reinterpret_cast<const std::byte*>(all.data());
  for (const std::string& vectors : UsableVectors()) {
    UseVectors(vectors);
    for (const auto& [type, format] :
         {std::pair{DataType::kFloat16, kHalf}, std::pair{DataType::kBfloat16, kBrain}}) {
      Reduce(type, ReduceOp::kSum, reinterpret_cast<std::byte*>(back.data()), {&source, 1}, 65536);
      for (int i = 0; i < 65536; ++i) {
        if (std::isnan(Decode16(format, all[i]))) {
          ASSERT_TRUE(std::isnan(Decode16(format, back[i]))) << Name(type) << " " << i;
        } else {
          ASSERT_EQ(back[i], all[i]) << Name(type) << " " << i;
        }
      }
    }
  }
  UseVectors(UsableVectors().front());
}

// 2048 + 1 + 1: each 1 alone would be rounded away.
TEST(Reduce, SixteenBitFloatsAreRoundedOnce) {
  const uint16_t values[3] = {0x6800, 0x3c00, 0x3c00};
  std::vector<const std::byte*> sources;
  for (const uint16_t& value : values)
    sources.push_back(reinterpret_cast<const std::byte*>(&value));
  uint16_t sum = 0;
  Reduce(DataType::kFloat16, ReduceOp::kSum, reinterpret_cast<std::byte*>(&sum), sources, 1);
  EXPECT_EQ(Decode16(kHalf, sum), 2050.0);
}

TEST(Reduce, MinAndMaxPassNanOn) {
  const float nan = std::nanf(""), one = 1;
  for (const auto& [a, b] : {std::pair{&nan, &one}, std::pair{&one, &nan}}) {
    const std::byte* sources[] = {reinterpret_cast<const std::byte*>(a),
                                  reinterpret_cast<const std::byte*>(b)};
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      float result = 0;
      Reduce(DataType::kFloat32, op, reinterpret_cast<std::byte*>(&result), sources, 1);
      EXPECT_TRUE(std::isnan(result)) << Name(op);
    }
  }
}

TEST(Reduce, IntegersWrap) {
  const int64_t most = std::numeric_limits<int64_t>::max(), two = 2;
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&most),
                                reinterpret_cast<const std::byte*>(&two)};
  int64_t result = 0;
  Reduce(DataType::kInt64, ReduceOp::kSum, reinterpret_cast<std::byte*>(&result), sources, 1);
  EXPECT_EQ(result, std::numeric_limits<int64_t>::min() + 1);
  Reduce(DataType::kInt64, ReduceOp::kProduct, reinterpret_cast<std::byte*>(&result), sources, 1);
  EXPECT_EQ(result, -2);
}

TEST(Scale, MultipliesAndDividesEachElement) {
  std::mt19937 random(3);
  for (const std::string& vectors : UsableVectors()) {
    UseVectors(vectors);
    for (const DataType type : kTypes) {
      if (!IsFloat(type)) continue;
      const auto from = RandomElements(type, 1001, &random);
      auto times = from, parts = from;
      Multiply(type, times.data(), from.data(), 1001, 0.75);
      Divide(type, parts.data(), from.data(), 1001, 3);
      for (size_t i = 0; i < 1001; ++i) {
        const size_t at = i * ElementSize(type);
        const double value = Decode(type, from.data() + at);
        ASSERT_EQ(Decode(type, times.data() + at), Round(type, Intermediate(type, value * 0.75)));
        ASSERT_EQ(Decode(type, parts.data() + at), Round(type, Intermediate(type, value / 3)));
      }
    }
  }
  UseVectors(UsableVectors().front());
}

TEST(CheckReduction, RefusesByNameWhatHasNoMeaning) {
  EXPECT_THAT(CheckReduction(ReduceOp::kBand, DataType::kFloat32).ToString(),
              HasSubstr("BAND has no meaning for float32"));
  EXPECT_THAT(CheckReduction(ReduceOp::kAvg, DataType::kInt32).ToString(),
              HasSubstr("AVG has no meaning for int32"));
  EXPECT_THAT(CheckReduction(ReduceOp::kSum, DataType::kByte).ToString(),
              HasSubstr("SUM has no meaning for byte"));
  EXPECT_FALSE(CheckReduction(ReduceOp{200}, DataType{200}).ok());
  int allowed = 0;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) allowed += CheckReduction(op, type).ok();
  }
  EXPECT_EQ(allowed, 4 * 6 + 5 * 7);
}

}  // namespace
}  // namespace hlaunch
