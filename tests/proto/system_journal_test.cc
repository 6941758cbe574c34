// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/system_journal.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

TEST(IsJournal, BelievesTheVariableOnlyOfTheStreamThatItNames) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  struct stat info = {};
  ASSERT_EQ(::fstat(write_end.get(), &info), 0);
  const std::string named = absl::StrCat(info.st_dev, ":", info.st_ino);
  EXPECT_TRUE(IsJournal(write_end.get(), named.c_str()));
  EXPECT_FALSE(IsJournal(write_end.get(), nullptr));
  EXPECT_FALSE(IsJournal(write_end.get(), ""));
  EXPECT_FALSE(IsJournal(write_end.get(), absl::StrCat(named, "0").c_str()));
  EXPECT_FALSE(IsJournal(-1, named.c_str()));
}

TEST(JournalEntry, HasALineForEachFieldAndALengthForWhatHasLines) {
  EXPECT_EQ(JournalEntry({{"MESSAGE", "a=b"}, {"PRIORITY", "6"}}), "MESSAGE=a=b\nPRIORITY=6\n");
  EXPECT_EQ(JournalEntry({{"MESSAGE", "a\nb"}}),
            std::string("MESSAGE\n\x03\0\0\0\0\0\0\0a\nb\n", 8 + 8 + 4));
  EXPECT_EQ(JournalEntry({{"MESSAGE", ""}}), "MESSAGE=\n");
}

TEST(AwaitJournal, WaitsUntilTheOtherEndHasTakenAll) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd journal(ends[1]);
  EXPECT_TRUE(AwaitJournal(ours.get(), Duration::zero()));
  ASSERT_EQ(::write(ours.get(), "MESSAGE=a\n", 10), 10);
  EXPECT_FALSE(AwaitJournal(ours.get(), std::chrono::milliseconds(10)));
  char taken[64];
  ASSERT_EQ(::read(journal.get(), taken, sizeof taken), 10);
  EXPECT_TRUE(AwaitJournal(ours.get(), std::chrono::seconds(60)));
  EXPECT_FALSE(AwaitJournal(-1, std::chrono::seconds(60)));
}

}  // namespace
}  // namespace hlaunch
