// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Linked into hlaunch, this plays a host whose memory or network card flips bits. It flips one bit
// in every large piece that the process for joint checks receives from other hosts. All other
// processes are left alone, so nothing else can reveal the host.

#include <sys/socket.h>

#include <fstream>
#include <iterator>
#include <string>

namespace {

constexpr ssize_t kLarge = 256;

bool IsJointCheck() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  return words.find("--join") != std::string::npos;
}

}  // namespace

extern "C" ssize_t recv(int socket, void* into, size_t size, int flags) {
  static const bool bad = IsJointCheck();
  const ssize_t got = ::recvfrom(socket, into, size, flags, nullptr, nullptr);
  // Collectives never block in recv, so this leaves the store's traffic alone.
  if (bad && got >= kLarge && flags == MSG_DONTWAIT) static_cast<char*>(into)[got / 2] ^= 4;
  return got;
}
