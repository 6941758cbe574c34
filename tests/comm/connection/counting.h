// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <vector>

namespace hlaunch {

// Bytes of which a lost or exchanged piece shows.
inline std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 7 + i / 251);
  return bytes;
}

}  // namespace hlaunch
