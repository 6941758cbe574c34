// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// line_writer BYTES: writes that many bytes to stdout in lines of 100, like a program with a full
// 64 KiB buffer. It costs almost nothing itself: the lines are made once.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::string block;
  while (block.size() < 65500)
    block += std::string(99, static_cast<char>('a' + block.size() % 26)) + "\n";
  uint64_t left = std::strtoull(argv[1], nullptr, 10);
  while (left > 0) {
    const ssize_t n = ::write(STDOUT_FILENO, block.data(), std::min<uint64_t>(left, block.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 1;
    left -= static_cast<uint64_t>(n);
  }
  return 0;
}
