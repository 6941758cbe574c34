// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/liveness.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr int kPatienceMs = 1000;
constexpr double kMostSeconds = 1e9;

// A socket connected to hlaunch; -1 if it does not listen. Never closed: another thread may use it.
int Connect() {
  const char* const name = ::getenv(kEnvHeartbeat);
  const size_t length = name != nullptr ? std::strlen(name) : 0;
  sockaddr_un address = {};
  if (length < 2 || length >= sizeof address.sun_path) return -1;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = '\0';  // An abstract name.
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (!fd.valid() || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return -1;
  }
  return fd.Release();
}

}  // namespace

bool SendHeartbeat(int64_t step, double timeout_s) noexcept {
  static const int fd = Connect();
  if (fd < 0) return false;
  const bool timed = timeout_s > 0;
  char words[128] = "heartbeat/1";
  size_t length = std::strlen(words);
  const auto add = [&](const char* name, int64_t value) {
    length += static_cast<size_t>(
        std::snprintf(words + length, sizeof words - length, " %s=%" PRId64, name, value));
  };
  if (step >= 0) add("step", step);
  if (timed) {
    const double millis = std::fmax(1, std::fmin(timeout_s, kMostSeconds) * 1000);
    add("timeout_ms", std::isinf(timeout_s) ? 0 : static_cast<int64_t>(millis));
  }
  const auto send = [&] {
    return ::send(fd, words, length, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(length);
  };
  if (send()) return true;
  if (errno != EAGAIN) return false;
  // The messages in the full queue also show that this worker lives, but have no timeout.
  if (!timed) return true;
  pollfd room = {fd, POLLOUT, 0};
  return ::poll(&room, 1, kPatienceMs) == 1 && send();
}

}  // namespace hlaunch
