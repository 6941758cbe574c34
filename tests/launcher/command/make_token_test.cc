// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/make_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/job/spec/token.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

absl::StatusOr<TokenOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunch", "token"});
  return ParseTokenOptions(static_cast<int>(words.size()), words.data());
}

TEST(ParseTokenOptions, ReadsItsWords) {
  EXPECT_TRUE(Parse({"--new"})->renew);
  EXPECT_EQ(Parse({"--file", "/t"})->file, "/t");
  EXPECT_TRUE(Parse({"--print"})->print);
  EXPECT_EQ(Parse({"--for-job", "a", "--token-file=/t"})->job_id, "a");
  EXPECT_EQ(Parse({"--for-job", "a", "--token-file=/t"})->token_file, "/t");
  EXPECT_TRUE(Parse({"--for-page", "--token-file=/t"})->for_page);
  EXPECT_TRUE(Parse({"--for-page"})->derives());
  EXPECT_FALSE(Parse({"--print"})->derives());
  EXPECT_THAT(Parse({"--help"})->text_to_print, testing::Optional(HasSubstr("usage:")));
  for (const std::vector<const char*>& wrong : {std::vector<const char*>{"x"},
                                                {"--nwe"},
                                                {"--print", "--new"},
                                                {"--for-job="},
                                                {"--token-file=/t"},
                                                {"--for-job=a", "--new"},
                                                {"--for-job=a", "--for-page"},
                                                {"--for-page", "--print"},
                                                {"--print", "--file=/t"}}) {
    EXPECT_EQ(Parse(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

class WriteTokenFileTest : public testing::Test {
 protected:
  WriteTokenFileTest() { std::filesystem::remove_all(folder_); }
  ~WriteTokenFileTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/make_token.", ::getpid());
  const std::string path_ = folder_ + "/a/b/token";
};

TEST_F(WriteTokenFileTest, MakesFoldersAndAFileForTheUserAlone) {
  const mode_t old = ::umask(0);
  ASSERT_TRUE(WriteTokenFile(path_, "secret", false).ok());
  ::umask(old);
  struct stat file = {}, above = {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  ASSERT_EQ(::stat((folder_ + "/a").c_str(), &above), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
  EXPECT_EQ(above.st_mode & 0777, 0700);
  EXPECT_EQ(ReadTokenFile(path_)->content, "secret\n");
}

TEST_F(WriteTokenFileTest, KeepsATokenThatIsThereUnlessItIsToReplaceIt) {
  ASSERT_TRUE(WriteTokenFile(path_, "first", false).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(WriteTokenFile(path_, "second", false)));
  EXPECT_EQ(ReadTokenFile(path_)->content, "first\n");
  EXPECT_TRUE(WriteTokenFile(path_, "second", true).ok());
  EXPECT_EQ(ReadTokenFile(path_)->content, "second\n");
  const std::filesystem::directory_iterator files(folder_ + "/a/b");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);  // No temporary file is left.
}

TEST_F(WriteTokenFileTest, TakesADraftThatACrashLeftForNoToken) {
  ASSERT_TRUE(std::filesystem::create_directories(folder_ + "/a/b"));
  std::ofstream(absl::StrCat(path_, ".", ::getpid())) << "half";
  EXPECT_TRUE(WriteTokenFile(path_, "secret", false).ok());
  EXPECT_EQ(ReadTokenFile(path_)->content, "secret\n");
}

TEST_F(WriteTokenFileTest, RefusesAFileThatWouldNotKeepIt) {
  for (const bool renew : {false, true}) {
    const absl::Status status = WriteTokenFile("/dev/null", "x", renew);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/null is no plain file"));
  }
}

TEST_F(WriteTokenFileTest, SaysWhyItCannotWrite) {
  const absl::Status status = WriteTokenFile("/proc/no/token", "x", false);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/no"));
}

}  // namespace
}  // namespace hlaunch
