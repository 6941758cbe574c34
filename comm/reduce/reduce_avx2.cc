// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/reduce/reduce_loops.h"

namespace hlaunch::kernels {

#if defined(__x86_64__)
namespace {

struct Avx2 {
  static constexpr const char* kName = "avx2";
  template <typename Element, typename Op>
  [[gnu::target("avx2")]] static void Reduce(const Arguments& a) {
    ReduceLoop<Element, Op>(a);
  }
  template <typename Element, bool divide>
  [[gnu::target("avx2")]] static void Scale(const Arguments& a) {
    ScaleLoop<Element, divide>(a);
  }
  template <typename Element>
  [[gnu::target("avx2")]] static void Widen(const Arguments& a) {
    WidenLoop<Element>(a);
  }
  template <typename Element>
  [[gnu::target("avx2")]] static void Narrow(const Arguments& a) {
    NarrowLoop<Element>(a);
  }
};

constexpr Kernels kKernels = MakeKernels<Avx2>();

}  // namespace

const Kernels* Avx2Kernels() {
  static const bool usable = __builtin_cpu_supports("avx2");
  return usable ? &kKernels : nullptr;
}
#else
const Kernels* Avx2Kernels() { return nullptr; }
#endif

}  // namespace hlaunch::kernels
