// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/reduce/reduce_loops.h"

namespace hlaunch::kernels {

#if defined(__x86_64__)
namespace {

struct Avx512 {
  static constexpr const char* kName = "avx512";
  template <typename Element, typename Op>
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] static void Reduce(const Arguments& a) {
    ReduceLoop<Element, Op>(a);
  }
  template <typename Element, bool divide>
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] static void Scale(const Arguments& a) {
    ScaleLoop<Element, divide>(a);
  }
  template <typename Element>
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] static void Widen(const Arguments& a) {
    WidenLoop<Element>(a);
  }
  template <typename Element>
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] static void Narrow(const Arguments& a) {
    NarrowLoop<Element>(a);
  }
};

constexpr Kernels kKernels = MakeKernels<Avx512>();

}  // namespace

const Kernels* Avx512Kernels() {
  static const bool usable = __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl") &&
                             __builtin_cpu_supports("avx512dq");
  return usable ? &kKernels : nullptr;
}
#else
const Kernels* Avx512Kernels() { return nullptr; }
#endif

}  // namespace hlaunch::kernels
