// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/heap_trim.h"

#include <malloc.h>

#include <algorithm>

namespace hlaunch {
namespace {

constexpr size_t kWorthwhile = 16 << 20;
constexpr size_t kNearlyEmpty = 8;  // The divisor.

}  // namespace

bool HeapTrim::Note(size_t bytes) {
  most_ = std::max(most_, bytes);
  if (most_ - bytes < kWorthwhile || bytes > most_ / kNearlyEmpty) return false;
  most_ = bytes;
  ::malloc_trim(0);
  return true;
}

}  // namespace hlaunch
