// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

TEST(WipeFromArguments, LeavesNothingOfASecret) {
  std::string words[] = {"hlaunch", "--token=secret", "secret", "other"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  WipeFromArguments(4, argv, "secret");
  EXPECT_EQ(words[1], "--token=xxxxxx");
  EXPECT_EQ(words[2], "xxxxxx");
  EXPECT_EQ(words[3], "other");
  WipeFromArguments(4, argv, "");
  EXPECT_EQ(words[3], "other");
}

class ReadTokenOfTest : public testing::Test {
 protected:
  ~ReadTokenOfTest() override { std::filesystem::remove(path_); }
  absl::StatusOr<std::string> Read(const std::string& content) {
    std::ofstream(path_) << content;
    return ReadTokenOf(path_);
  }
  const std::string path_ = absl::StrCat(testing::TempDir(), "token_source.", ::getpid());
};

TEST_F(ReadTokenOfTest, ReadsOneWord) {
  EXPECT_EQ(*Read("hlj1.a\n"), "hlj1.a");
  EXPECT_EQ(*Read("  hlj1.a"), "hlj1.a");
}

TEST_F(ReadTokenOfTest, SaysWhatIsWrong) {
  for (const std::string& content :
       {std::string(), std::string("\n"), std::string("a b\n"), std::string(2000, 'a')}) {
    EXPECT_THAT(std::string(Read(content).status().message()),
                HasSubstr(path_ + " holds no join token"));
  }
  EXPECT_THAT(std::string(ReadTokenOf("/no/such").status().message()), HasSubstr("cannot be read"));
}

// A person types the token and ends the line, not the file.
TEST_F(ReadTokenOfTest, TakesALineOfStdin) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int saved = ::dup(STDIN_FILENO);
  ::dup2(ends[0], STDIN_FILENO);
  ASSERT_EQ(::write(ends[1], "hlj1.a\n", 7), 7);
  EXPECT_EQ(*ReadTokenOf("-"), "hlj1.a");
  ::dup2(saved, STDIN_FILENO);
  for (const int fd : {ends[0], ends[1], saved}) ::close(fd);
}

}  // namespace
}  // namespace hlaunch
