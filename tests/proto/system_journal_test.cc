// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/system_journal.h"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace hlaunch
