// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <cstddef>

namespace hlaunch {

// What objects take of the heap, with what the allocator adds: glibc takes a word more for a block,
// 32 bytes at least and whole multiples of 16. Pure.

inline size_t HeapBytes(size_t size) {
  constexpr size_t kLeast = 32;
  constexpr size_t kMultiple = 16;
  if (size == 0) return 0;
  return std::max(kLeast, (size + sizeof(size_t) + kMultiple - 1) / kMultiple * kMultiple);
}

// The heap's part of a string with room for `capacity` bytes; none if they fit into the object.
inline size_t TextHeapBytes(size_t capacity) {
  constexpr size_t kWithin = 15;
  return capacity <= kWithin ? 0 : HeapBytes(capacity + 1);
}

}  // namespace hlaunch
