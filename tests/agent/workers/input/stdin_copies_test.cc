// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with a file as this process's stdin.

#include "agent/workers/input/stdin_copies.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "asio/io_context.hpp"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

class StdinCopiesTest : public ::testing::Test {
 protected:
  // Makes stdin larger than the room in a pipe.
  StdinCopiesTest() : own_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const UniqueFd file(::memfd_create("stdin", MFD_CLOEXEC));
    HLAUNCH_CHECK(file.valid() && ::ftruncate(file.get(), 1 << 20) == 0);
    HLAUNCH_CHECK(::dup2(file.get(), STDIN_FILENO) == STDIN_FILENO);
    auto copies = StdinCopies::Open(loop_);
    HLAUNCH_CHECK(copies.ok());
    copies_ = *std::move(copies);
    auto in = copies_->Link();
    HLAUNCH_CHECK(in.ok() && ::fcntl(in->get(), F_SETFL, O_NONBLOCK) == 0);
    in_ = *std::move(in);
    loop_.poll();
  }
  ~StdinCopiesTest() override {
    if (own_.valid()) ::dup2(own_.get(), STDIN_FILENO);
  }

  // Reads what is in the pipe. Returns true if its end follows, false if more may come.
  bool ReadsToTheEnd() const {
    std::string bytes(kStdinChunk, '\0');
    ssize_t n = 1;
    while (n > 0) n = ::read(in_.get(), bytes.data(), bytes.size());
    return n == 0;
  }

  asio::io_context loop_{1};
  const UniqueFd own_;
  std::unique_ptr<StdinCopies> copies_;
  UniqueFd in_;
};

TEST_F(StdinCopiesTest, FillsThePipeAgainWhenThereIsRoom) {
  EXPECT_FALSE(ReadsToTheEnd());
  loop_.restart();
  while (!ReadsToTheEnd()) loop_.run_one();
}

TEST_F(StdinCopiesTest, WhoIsForgottenFindsTheEndThoughThePipeWasFull) {
  copies_->Clear();
  EXPECT_TRUE(ReadsToTheEnd());
  loop_.restart();
  loop_.poll();
}

TEST_F(StdinCopiesTest, DoesNothingAfterItsDestructionThoughTheLoopRuns) {
  copies_.reset();
  EXPECT_TRUE(ReadsToTheEnd());
  loop_.restart();
  loop_.poll();
}

}  // namespace
}  // namespace hlaunch
