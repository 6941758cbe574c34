// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/lack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

// Returns 0 if a write beyond the limit of a file's size returns EFBIG.
int WriteBeyondTheLimit() {
  SayWhatIsLacking();
  const rlimit none = {0, 0};
  std::FILE* file = std::tmpfile();
  if (file == nullptr || ::setrlimit(RLIMIT_FSIZE, &none) != 0) return 1;
  return ::write(::fileno(file), "x", 1) < 0 && errno == EFBIG ? 0 : 2;
}

TEST(SayWhatIsLacking, LetsAWriteBeyondTheFileLimitFail) {
  EXPECT_EXIT(std::exit(WriteBeyondTheLimit()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hlaunch
