// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hlaunch {

// While this object lives, the thread that made it can start no thread and no process. The other
// threads still can if this process runs as root. Belongs to one thread.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(::getrlimit(RLIMIT_NPROC, &before_), 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &none), 0);
    Become(kNobody);
  }
  NoThreads(const NoThreads&) = delete;
  ~NoThreads() {
    Become(0);
    EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &before_), 0);
  }

 private:
  static constexpr uid_t kNobody = 65534;

  // The limit does not hold for root. The raw system call changes only this thread.
  void Become(uid_t user) const {
    const long changed = was_root_ ? ::syscall(SYS_setresuid, user, user, 0) : 0;
    EXPECT_EQ(changed, 0);
  }

  const bool was_root_ = ::geteuid() == 0;
  rlimit before_{};
};

}  // namespace hlaunch
