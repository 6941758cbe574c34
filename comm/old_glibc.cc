// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The functions of glibc that libhlcomm and hlaunch-pmix for old systems use and glibc 2.28 lacks.
// Only deploy/build_portable links this; elsewhere these names are glibc's own.

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

constexpr long kBillion = 1'000'000'000;

timespec Add(const timespec& at, long seconds, long nanoseconds) {
  const long sum = at.tv_nsec + nanoseconds;
  return {at.tv_sec + seconds +
              (sum >= kBillion ? 1
               : sum < 0       ? -1
                               : 0),
          (sum + kBillion) % kBillion};
}

// Converts `deadline` from `clock` to the wall clock, as both are now.
timespec OnTheWall(clockid_t clock, const timespec& deadline) {
  timespec now = {}, wall = {};
  ::clock_gettime(clock, &now);
  ::clock_gettime(CLOCK_REALTIME, &wall);
  return Add(wall, deadline.tv_sec - now.tv_sec, deadline.tv_nsec - now.tv_nsec);
}

int Look(int folder, const char* path, void* about, int flags) {
  return static_cast<int>(::syscall(SYS_newfstatat, folder, path, about, flags));
}

}  // namespace

extern "C" {

char __libc_single_threaded = 0;  // 2.32. It is 0, since Python and libpmix have threads.

// 2.30. A change of the wall clock changes how long this waits; callers look at their own clock.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* deadline) {
  const timespec wall = OnTheWall(clock, *deadline);
  return ::pthread_cond_timedwait(condition, mutex, &wall);
}

// 2.36.
uint32_t arc4random() {
  uint32_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

// 2.33. Before, headers mapped these to other functions.
int stat(const char* path, struct stat* about) { return Look(AT_FDCWD, path, about, 0); }
int lstat(const char* path, struct stat* about) {
  return Look(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, struct stat* about) { return Look(fd, "", about, AT_EMPTY_PATH); }
int fstat64(int fd, struct stat64* about) { return Look(fd, "", about, AT_EMPTY_PATH); }

// 2.32. Neither of the two names signals.
const char* sigabbrev_np(int /*signal*/) { return nullptr; }

}  // extern "C"
