// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/reduce/reduce_kernels.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/reduce/reduce_loops.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using kernels::Arguments;
using kernels::At;
using kernels::Kernel;
using kernels::Kernels;
using kernels::NarrowLoop;
using kernels::ReduceLoop;
using kernels::ScaleLoop;
using kernels::WidenLoop;

struct Baseline {
  static constexpr const char* kName = "baseline";
  template <typename Element, typename Op>
  static void Reduce(const Arguments& a) {
    ReduceLoop<Element, Op>(a);
  }
  template <typename Element, bool divide>
  static void Scale(const Arguments& a) {
    ScaleLoop<Element, divide>(a);
  }
  template <typename Element>
  static void Widen(const Arguments& a) {
    WidenLoop<Element>(a);
  }
  template <typename Element>
  static void Narrow(const Arguments& a) {
    NarrowLoop<Element>(a);
  }
};

constexpr Kernels kBaseline = kernels::MakeKernels<Baseline>();

// Widest first.
std::vector<const Kernels*> Usable() {
  std::vector<const Kernels*> usable{kernels::Avx512Kernels(), kernels::Avx2Kernels(), &kBaseline};
  std::erase(usable, nullptr);
  return usable;
}

const Kernels*& InUse() {
  static const Kernels* in_use = Usable().front();
  return in_use;
}

}  // namespace

absl::Status CheckReduction(ReduceOp op, DataType type) {
  const bool known = At(type) < kDataTypes && At(op) < kReduceOps;
  if (known && kBaseline.reduce[At(type)][At(op)] != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Name(op), " has no meaning for ", Name(type)));
}

void Reduce(DataType type, ReduceOp op, std::byte* into, std::span<const std::byte* const> sources,
            size_t count, double divisor) {
  const Kernel kernel = InUse()->reduce[At(type)][At(op)];
  HLAUNCH_CHECK(kernel != nullptr && !sources.empty());
  kernel({into, sources.data(), sources.size(), count, divisor});
}

void Multiply(DataType type, std::byte* into, const std::byte* from, size_t count, double factor) {
  HLAUNCH_CHECK(InUse()->multiply[At(type)] != nullptr);
  InUse()->multiply[At(type)]({into, &from, 1, count, factor});
}

void Divide(DataType type, std::byte* into, const std::byte* from, size_t count, double divisor) {
  HLAUNCH_CHECK(InUse()->divide[At(type)] != nullptr);
  InUse()->divide[At(type)]({into, &from, 1, count, divisor});
}

void Widen(DataType type, std::byte* into, const std::byte* from, size_t count) {
  HLAUNCH_CHECK(InUse()->widen[At(type)] != nullptr);
  InUse()->widen[At(type)]({into, &from, 1, count, 1});
}

void Narrow(DataType type, std::byte* into, const std::byte* from, size_t count) {
  HLAUNCH_CHECK(InUse()->narrow[At(type)] != nullptr);
  InUse()->narrow[At(type)]({into, &from, 1, count, 1});
}

std::string VectorsInUse() { return InUse()->name; }

std::vector<std::string> UsableVectors() {
  std::vector<std::string> names;
  for (const Kernels* kernels : Usable()) names.emplace_back(kernels->name);
  return names;
}

void UseVectors(const std::string& name) {
  for (const Kernels* kernels : Usable()) {
    if (kernels->name == name) InUse() = kernels;
  }
}

}  // namespace hlaunch
