// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "comm/call/call.h"

// The loops of reduce_kernels.h, for the files that compile them for a width of vectors.

// A function that a kernel calls must be inlined, else it is compiled for the baseline.
#define HLAUNCH_INLINE [[gnu::always_inline]] inline

namespace hlaunch::kernels {

// ---- Elements: their type in memory, and the type for arithmetic.

struct Half {
  using Stored = uint16_t;
  using Wide = float;
  HLAUNCH_INLINE static float Widen(uint16_t half) {
    constexpr uint32_t kExponent = 0x7c00u << 13;
    uint32_t bits = (half & 0x7fffu) << 13;
    const uint32_t exponent = bits & kExponent;
    bits += (127u - 15) << 23;
    const uint32_t huge = bits + ((128u - 16) << 23);  // Infinite or NaN.
    // Subnormal: let a subtraction shift the leading one into its place.
    const float tiny = std::bit_cast<float>(bits + (1u << 23)) - std::bit_cast<float>(113u << 23);
    bits = exponent == kExponent ? huge : bits;
    bits = exponent == 0 ? std::bit_cast<uint32_t>(tiny) : bits;
    return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
  }
  HLAUNCH_INLINE static uint16_t Narrow(float value) {
    constexpr uint32_t kShift = ((127u - 15) + (23 - 10) + 1) << 23;
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t bits = all & 0x7fffffffu;
    const uint32_t huge = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    // Subnormal: let an addition round and shift.
    const uint32_t tiny =
        std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(kShift)) - kShift;
    const uint32_t normal = (bits + (bits >> 13 & 1) + 0xfffu - ((127u - 15) << 23)) >> 13;
    uint32_t half = bits < (113u << 23) ? tiny : normal;
    half = bits >= ((127u + 16) << 23) ? huge : half;
    return static_cast<uint16_t>(half | (all >> 16 & 0x8000u));
  }
};

struct Brain {
  using Stored = uint16_t;
  using Wide = float;
  HLAUNCH_INLINE static float Widen(uint16_t brain) {
    return std::bit_cast<float>(static_cast<uint32_t>(brain) << 16);
  }
  HLAUNCH_INLINE static uint16_t Narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40u;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};

template <typename T>
struct Plain {
  using Stored = T;
  using Wide = T;
  HLAUNCH_INLINE static T Widen(T value) { return value; }
  HLAUNCH_INLINE static T Narrow(T value) { return value; }
};

// ---- Operations.

// Integers wrap, as unsigned ones do; narrow ones are computed as int.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_floating_point_v<T>, std::type_identity<T>,
                                             std::make_unsigned<T>>::type;

struct Sum {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Product {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Min {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Max {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Band {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  template <typename T>
  HLAUNCH_INLINE static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// ---- Loops. Memory is read and written with memcpy, which the compiler turns into vector code.

template <typename T>
HLAUNCH_INLINE T Load(const std::byte* at, size_t i) {
  T value;
  std::memcpy(&value, at + i * sizeof(T), sizeof value);
  return value;
}
template <typename T>
HLAUNCH_INLINE void Put(std::byte* at, size_t i, T value) {
  std::memcpy(at + i * sizeof(T), &value, sizeof value);
}

constexpr size_t kBlock = 1024;  // A block of this many elements stays in the L1 cache.

struct Arguments {
  std::byte* into;
  const std::byte* const* sources;
  size_t sources_count;
  size_t count;
  double factor;  // Scale: the factor. Reduce: the result is divided by it before it is rounded.
};

template <typename Element, typename Op>
HLAUNCH_INLINE void ReduceLoop(const Arguments& a) {
  using Stored = typename Element::Stored;
  using Wide = typename Element::Wide;
  Wide sums[kBlock];
  for (size_t begin = 0; begin < a.count; begin += kBlock) {
    const size_t n = std::min(kBlock, a.count - begin);
    const std::byte* const first = a.sources[0] + begin * sizeof(Stored);
    for (size_t i = 0; i < n; ++i) sums[i] = Element::Widen(Load<Stored>(first, i));
    for (size_t s = 1; s < a.sources_count; ++s) {
      const std::byte* const next = a.sources[s] + begin * sizeof(Stored);
      for (size_t i = 0; i < n; ++i) {
        sums[i] = Op::template Of<Wide>(sums[i], Element::Widen(Load<Stored>(next, i)));
      }
    }
    if constexpr (std::is_floating_point_v<Wide>) {
      const auto divisor = static_cast<Wide>(a.factor);
      if (divisor != 1) {
        for (size_t i = 0; i < n; ++i) sums[i] /= divisor;
      }
    }
    std::byte* const into = a.into + begin * sizeof(Stored);
    for (size_t i = 0; i < n; ++i) Put<Stored>(into, i, Element::Narrow(sums[i]));
  }
}

template <typename Element, bool divide>
HLAUNCH_INLINE void ScaleLoop(const Arguments& a) {
  using Stored = typename Element::Stored;
  using Wide = typename Element::Wide;
  const auto factor = static_cast<Wide>(a.factor);
  for (size_t i = 0; i < a.count; ++i) {
    const Wide value = Element::Widen(Load<Stored>(a.sources[0], i));
    Put<Stored>(a.into, i, Element::Narrow(divide ? value / factor : value * factor));
  }
}

template <typename Element>
HLAUNCH_INLINE void WidenLoop(const Arguments& a) {
  using Stored = typename Element::Stored;
  for (size_t i = 0; i < a.count; ++i) {
    Put<float>(a.into, i, Element::Widen(Load<Stored>(a.sources[0], i)));
  }
}

template <typename Element>
HLAUNCH_INLINE void NarrowLoop(const Arguments& a) {
  using Stored = typename Element::Stored;
  for (size_t i = 0; i < a.count; ++i) {
    Put<Stored>(a.into, i, Element::Narrow(Load<float>(a.sources[0], i)));
  }
}

// ---- The same loops for each width of vectors.

using Kernel = void (*)(const Arguments&);

struct Kernels {
  const char* name = "";
  Kernel reduce[kDataTypes][kReduceOps] = {};
  Kernel multiply[kDataTypes] = {};
  Kernel divide[kDataTypes] = {};
  Kernel widen[kDataTypes] = {};  // To float32, and back.
  Kernel narrow[kDataTypes] = {};
};

constexpr int At(DataType type) { return static_cast<int>(type); }
constexpr int At(ReduceOp op) { return static_cast<int>(op); }

template <typename Vectors, typename Element>
constexpr void AddOrdered(Kernels* kernels, DataType type) {
  Kernel* const row = kernels->reduce[At(type)];
  row[At(ReduceOp::kSum)] = Vectors::template Reduce<Element, Sum>;
  row[At(ReduceOp::kProduct)] = Vectors::template Reduce<Element, Product>;
  row[At(ReduceOp::kMin)] = Vectors::template Reduce<Element, Min>;
  row[At(ReduceOp::kMax)] = Vectors::template Reduce<Element, Max>;
}

template <typename Vectors, typename Element>
constexpr void AddFloat(Kernels* kernels, DataType type) {
  AddOrdered<Vectors, Element>(kernels, type);
  Kernel* const row = kernels->reduce[At(type)];
  row[At(ReduceOp::kAvg)] = row[At(ReduceOp::kPremulSum)] = row[At(ReduceOp::kSum)];
  kernels->multiply[At(type)] = Vectors::template Scale<Element, false>;
  kernels->divide[At(type)] = Vectors::template Scale<Element, true>;
}

template <typename Vectors, typename Element>
constexpr void AddSmallFloat(Kernels* kernels, DataType type) {
  AddFloat<Vectors, Element>(kernels, type);
  kernels->widen[At(type)] = Vectors::template Widen<Element>;
  kernels->narrow[At(type)] = Vectors::template Narrow<Element>;
}

template <typename Vectors, typename T>
constexpr void AddInteger(Kernels* kernels, DataType type) {
  AddOrdered<Vectors, Plain<T>>(kernels, type);
  Kernel* const row = kernels->reduce[At(type)];
  row[At(ReduceOp::kBand)] = Vectors::template Reduce<Plain<T>, Band>;
  row[At(ReduceOp::kBor)] = Vectors::template Reduce<Plain<T>, Bor>;
  row[At(ReduceOp::kBxor)] = Vectors::template Reduce<Plain<T>, Bxor>;
}

template <typename Vectors>
constexpr Kernels MakeKernels() {
  Kernels kernels;
  kernels.name = Vectors::kName;
  AddSmallFloat<Vectors, Half>(&kernels, DataType::kFloat16);
  AddSmallFloat<Vectors, Brain>(&kernels, DataType::kBfloat16);
  AddFloat<Vectors, Plain<float>>(&kernels, DataType::kFloat32);
  AddFloat<Vectors, Plain<double>>(&kernels, DataType::kFloat64);
  AddInteger<Vectors, int8_t>(&kernels, DataType::kInt8);
  AddInteger<Vectors, uint8_t>(&kernels, DataType::kUint8);
  AddInteger<Vectors, int32_t>(&kernels, DataType::kInt32);
  AddInteger<Vectors, int64_t>(&kernels, DataType::kInt64);
  // A bool is a byte that is 0 or 1.
  AddInteger<Vectors, uint8_t>(&kernels, DataType::kBool);
  Kernel* const row = kernels.reduce[At(DataType::kBool)];
  row[At(ReduceOp::kSum)] = row[At(ReduceOp::kMax)] = row[At(ReduceOp::kBor)];
  row[At(ReduceOp::kProduct)] = row[At(ReduceOp::kMin)] = row[At(ReduceOp::kBand)];
  return kernels;
}

// Return the kernels for these vectors; null if the processor does not have them.
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();

}  // namespace hlaunch::kernels
