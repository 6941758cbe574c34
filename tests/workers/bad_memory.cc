// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Linked into hlaunch: a host whose memory or network card flips bits. Of what the process that
// checks the host together with others gets from them, every large piece is wrong in one bit; all
// other processes are left alone, so that nothing else can be why the host is found out.

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
  // Collectives never block in it; what goes to and from the store is left alone.
  if (bad && got >= kLarge && flags == MSG_DONTWAIT) static_cast<char*>(into)[got / 2] ^= 4;
  return got;
}
