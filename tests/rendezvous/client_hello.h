// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

namespace hlaunch {

// `value` in `size` bytes, the highest byte first.
inline std::string Number(size_t value, int size) {
  std::string bytes;
  for (int i = size - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// The length of `content` in `size` bytes, then `content`.
inline std::string Vector(const std::string& content, int size) {
  return Number(content.size(), size) + content;
}

// A ClientHello (RFC 8446, 4.1.2) that asks for `name` after another extension.
inline std::string HelloFor(const std::string& name) {
  const std::string server_name =
      Number(0, 2) + Vector(Vector(Number(0, 1) + Vector(name, 2), 2), 2);
  const std::string other = Number(0x2b, 2) + Vector(std::string("\x02\x03\x04", 3), 2);
  const std::string hello = std::string("\x03\x03", 2) + std::string(32, 'r') +
                            Vector("session", 1) + Vector(std::string("\x13\x01", 2), 2) +
                            Vector(std::string(1, '\0'), 1) +
                            Vector(other + (name.empty() ? "" : server_name), 2);
  return std::string("\x16\x03\x01", 3) + Vector(Number(1, 1) + Vector(hello, 3), 2);
}

}  // namespace hlaunch
