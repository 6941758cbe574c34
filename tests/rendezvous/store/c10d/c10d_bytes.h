// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/store/c10d/c10d_protocol.h"

// What clients of a store send and what they are answered, as bytes.

namespace hlaunch {

// The first words of a client of PyTorch 2.2 or later.
inline std::string Validate() {
  std::string bytes(1, '\0');
  PutUint32(&bytes, kC10dMagic);
  return bytes;
}

inline std::string Request(C10dOp op, std::vector<std::string> keys = {},
                           std::vector<std::string> values = {}, int64_t number = 0) {
  return SerializeC10dRequest({op, std::move(keys), std::move(values), number});
}

inline std::string Int64(int64_t value) {
  std::string bytes;
  PutInt64(&bytes, value);
  return bytes;
}

inline std::string Text(absl::string_view text) {
  std::string bytes;
  PutText(&bytes, text);
  return bytes;
}

inline std::string Byte(uint8_t value) { return std::string(1, static_cast<char>(value)); }

}  // namespace hlaunch
