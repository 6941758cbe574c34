// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/run_getent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kMostBytes = 64 << 10;

// What posix_spawn does in the child: it writes to `output`, and nothing else of ours is open.
class Actions {
 public:
  explicit Actions(int output) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, output, 1);
    ::posix_spawn_file_actions_addopen(&files_, 2, "/dev/null", O_WRONLY, 0);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~Actions() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  // The child's pid, or -1.
  pid_t Spawn(char* const* argv) const {
    pid_t pid = -1;
    return ::posix_spawnp(&pid, argv[0], &files_, &attributes_, argv, ::environ) == 0 ? pid : -1;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// Reads until the other end is closed, which sets `closed`, or kMostBytes have come, or `deadline`
// has passed.
std::string ReadUntil(int fd, Instant deadline, bool* closed) {
  std::string text;
  while (text.size() < kMostBytes) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
    pollfd readable = {fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return text;
    char bytes[4096];
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    *closed = got <= 0;
    if (*closed) return text;
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

std::string RunGetent(const std::string& host, Duration patience) {
  const Instant deadline = MonotonicClock().Now() + patience;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  std::string words[] = {"getent", "ahosts", host};
  char* const argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const pid_t pid = Actions(input.get()).Spawn(argv);
  input.Close();
  if (pid < 0) return "";
  bool closed = false;
  std::string text = ReadUntil(output.get(), deadline, &closed);
  // A child that has closed its output ends by itself. Another thread may have reaped it already,
  // and its pid may be that of another process by now.
  if (!closed) ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace hlaunch
