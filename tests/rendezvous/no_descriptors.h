// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/base/unique_fd.h"

namespace hlaunch {

// While this object lives, the process can open no further descriptor. Belongs to one thread.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit low = before_;
    low.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 256);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    while (true) {
      UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!null.valid()) break;
      rest_.push_back(std::move(null));
    }
  }
  NoDescriptors(const NoDescriptors&) = delete;
  ~NoDescriptors() {
    rest_.clear();
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0);
  }

 private:
  rlimit before_{};
  std::vector<UniqueFd> rest_;
};

}  // namespace hlaunch
