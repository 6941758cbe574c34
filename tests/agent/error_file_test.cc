// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/error_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace hlaunch {
namespace {

TEST(ErrorFileMessage, ReadsBothFormsThatTorchAccepts) {
  EXPECT_EQ(ErrorFileMessage(R"({"message": {"message": "ValueError: bad", "extraInfo": {}}})"),
            "ValueError: bad");
  EXPECT_EQ(ErrorFileMessage(R"({"message": "it broke", "timestamp": 1})"), "it broke");
}

TEST(ErrorFileMessage, IsOneShortLine) {
  EXPECT_EQ(ErrorFileMessage(R"({"message": "first\nsecond"})"), "first");
  EXPECT_LT(ErrorFileMessage("{\"message\": \"" + std::string(100000, 'x') + "\"}").size(), 1000u);
}

TEST(ErrorFileMessage, IsEmptyForAnythingElse) {
  for (const char* json : {"", "{", "[]", "7", "null", "{}", R"({"message": 7})",
                           R"({"message": {"message": 7}})", R"({"message": {}})", "\xff\xfe"}) {
    EXPECT_EQ(ErrorFileMessage(json), "") << json;
  }
}

class ReadErrorFileTest : public testing::Test {
 protected:
  const std::string path_ = testing::TempDir() + "error_file_test." + std::to_string(::getpid());
  void TearDown() override { ::unlink(path_.c_str()); }
};

TEST_F(ReadErrorFileTest, ReadsAtMostTheLimit) {
  std::ofstream(path_) << "0123456789";
  EXPECT_EQ(ReadErrorFile(path_, 100), "0123456789");
  EXPECT_EQ(ReadErrorFile(path_, 4), "0123");
}

TEST_F(ReadErrorFileTest, TakesNothingButAFileForOne) {
  EXPECT_EQ(ReadErrorFile(path_, 10), "");  // There is none.
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(ReadErrorFile(path_, 10), "");  // And does not wait for a writer.
  ::unlink(path_.c_str());
  ASSERT_EQ(::symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_EQ(ReadErrorFile(path_, 10), "");
}

}  // namespace
}  // namespace hlaunch
