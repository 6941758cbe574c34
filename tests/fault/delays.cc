// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors
//
// A library for LD_PRELOAD. It now and then stops a thread for up to 150 ms: where the thread takes
// or gives back a lock, reads the clock, or uses a file descriptor. A busy machine does that to one
// test in thousands, and this library to each. So a test that fails with it may depend on how busy
// the machine is. It does not if it wants a thread to run, as a stopped one sleeps here. Programs
// without shared libraries are not affected.
//
// The number HLAUNCH_DELAYS_SEED, the process id and the thread id choose where and for how long
// threads stop.

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

// All stops of a process together, so that no test comes near its time limit.
constexpr int kMostMilliseconds = 2000;

std::atomic<int> milliseconds_left{0};  // None before Begin.
uint64_t seed = 0;
uint64_t one_in = 1;  // Of so many calls, one stops.

// The finaliser of MurmurHash3, by Austin Appleby, who gave it to the public.
uint64_t Mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

// Some processes stop early and often, and others seldom, over all of their life.
__attribute__((constructor)) void Begin() {
  const char* const given = std::getenv("HLAUNCH_DELAYS_SEED");
  seed = Mixed((given == nullptr ? 0 : std::strtoull(given, nullptr, 10)) * 1'000'003 +
               static_cast<uint64_t>(::getpid()));
  one_in = uint64_t{2} << (seed % 9);
  milliseconds_left = kMostMilliseconds;
}

void MayStop() {
  static thread_local uint64_t count = 0;
  if (milliseconds_left.load(std::memory_order_relaxed) <= 0) return;
  const uint64_t random =
      Mixed(seed ^ (static_cast<uint64_t>(::syscall(SYS_gettid)) << 32) ^ ++count);
  if (random % one_in != 0) return;
  const uint64_t most = (random >> 40) % 3 == 0 ? 12 : 150;
  const int milliseconds = 1 + static_cast<int>((random >> 20) % most);
  milliseconds_left -= milliseconds;
  const timespec time{0, milliseconds * 1'000'000L};
  ::syscall(SYS_nanosleep, &time, nullptr);  // Unlike nanosleep(), it calls nothing else.
}

// What the program would have called without this library. `found` keeps it, without a lock, which
// a process that forks could leave locked in its child.
template <typename Function>
Function Real(const char* name, std::atomic<Function>& found) {
  if (found.load() == nullptr) found = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  return found.load();
}

}  // namespace

// Defines the C library's function `name`, to stop now and then before it does its work.
#define HLAUNCH_DELAY(type, name, parameters, arguments)    \
  extern "C" type name parameters {                         \
    static constinit std::atomic<type(*) parameters> found; \
    MayStop();                                              \
    return Real(#name, found) arguments;                    \
  }

HLAUNCH_DELAY(int, pthread_mutex_lock, (pthread_mutex_t * mutex) noexcept, (mutex))
HLAUNCH_DELAY(int, pthread_mutex_unlock, (pthread_mutex_t * mutex) noexcept, (mutex))
HLAUNCH_DELAY(int, clock_gettime, (clockid_t clock, timespec* time) noexcept, (clock, time))
HLAUNCH_DELAY(int, close, (int fd), (fd))
HLAUNCH_DELAY(int, connect, (int fd, const sockaddr* to, socklen_t size), (fd, to, size))
HLAUNCH_DELAY(int, accept4, (int fd, sockaddr* from, socklen_t* size, int flags),
              (fd, from, size, flags))
HLAUNCH_DELAY(ssize_t, read, (int fd, void* bytes, size_t size), (fd, bytes, size))
HLAUNCH_DELAY(ssize_t, write, (int fd, const void* bytes, size_t size), (fd, bytes, size))
HLAUNCH_DELAY(ssize_t, recv, (int fd, void* bytes, size_t size, int flags),
              (fd, bytes, size, flags))
HLAUNCH_DELAY(ssize_t, send, (int fd, const void* bytes, size_t size, int flags),
              (fd, bytes, size, flags))
HLAUNCH_DELAY(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags))
HLAUNCH_DELAY(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))
HLAUNCH_DELAY(int, poll, (pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
HLAUNCH_DELAY(int, epoll_wait, (int epoll, epoll_event* events, int most, int timeout),
              (epoll, events, most, timeout))
