// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/process/lack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string WordsOf(int error) {
  return LackWords(
      std::make_exception_ptr(std::system_error(error, std::system_category(), "epoll")));
}

TEST(LackWords, NamesWhatIsLackingAndTheWayOut) {
  EXPECT_THAT(WordsOf(EMFILE), StartsWith("out of descriptors: Too many open files; raise"));
  EXPECT_THAT(WordsOf(EAGAIN), HasSubstr("cannot start a thread: Resource temporarily"));
  EXPECT_THAT(WordsOf(EPERM), HasSubstr("seccomp=unconfined"));
  EXPECT_THAT(LackWords(std::make_exception_ptr(std::bad_alloc())), HasSubstr("ulimit -v"));
}

TEST(LackWords, QuotesWhatElseIsThrown) {
  EXPECT_EQ(WordsOf(EBADF), "cannot go on: epoll: Bad file descriptor");
  EXPECT_EQ(LackWords(std::make_exception_ptr(std::runtime_error("no luck"))),
            "cannot go on: no luck");
  EXPECT_EQ(LackWords(std::make_exception_ptr(7)), "cannot go on: a bug in hlaunch");
  EXPECT_EQ(LackWords(nullptr), "cannot go on: a bug in hlaunch");
}

void FindNoDescriptor() { throw std::system_error(EMFILE, std::system_category(), "epoll"); }

TEST(SayWhatIsLackingDeathTest, SaysItBeforeTheProcessAborts) {
  EXPECT_DEATH(
      {
        SayWhatIsLacking();
        []() noexcept { FindNoDescriptor(); }();
      },
      "hlaunch: out of descriptors: Too many open files; raise the limit");
}

}  // namespace
}  // namespace hlaunch
