// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/error_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

TEST(ParseErrorFile, ReadsBothFormsThatTorchAccepts) {
  EXPECT_EQ(
      ParseErrorFile(R"({"message": {"message": "ValueError: bad", "extraInfo": {}}})").message,
      "ValueError: bad");
  EXPECT_EQ(ParseErrorFile(R"({"message": "it broke", "timestamp": 1})").message, "it broke");
}

TEST(ParseErrorFile, HasAllLinesOfAMessage) {
  EXPECT_EQ(ParseErrorFile(R"({"message": "first\nsecond"})").message, "first\nsecond");
}

TEST(ParseErrorFile, HasTheHeadOfALongMessage) {
  const std::string message =
      ParseErrorFile("{\"message\": \"E: " + std::string(100000, 'x') + "\"}").message;
  EXPECT_EQ(message.size(), kMaxTextBytes);
  EXPECT_EQ(message.substr(0, 5), "E: xx");
}

TEST(ParseErrorFile, HasTheHeadOfAFileThatIsCutOff) {
  const std::string whole = R"({"message": {"message": "KeyError: é\u00e9\\ \n xx", "extraInfo":
      {"py_callstack": "Traceback:\n  File \"t.py\"\nKeyError", "timestamp": "1"}}})";
  const size_t end_of_message = whole.find("\", \"extraInfo");
  for (size_t size = whole.find("KeyError") + 8; size <= end_of_message; ++size) {
    const std::string message = ParseErrorFile(whole.substr(0, size)).message;
    EXPECT_EQ(message.substr(0, 8), "KeyError") << whole.substr(0, size);
  }
}

TEST(ParseErrorFile, HasTheEndOfTheTraceback) {
  EXPECT_EQ(ParseErrorFile(R"({"message": {"message": "ValueError: bad", "extraInfo":
      {"py_callstack": "Traceback:\n  File \"t.py\"\nValueError: bad\n", "timestamp": "1"}}})")
                .traceback,
            "Traceback:\n  File \"t.py\"\nValueError: bad");
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += "  frame " + std::to_string(i) + "\\n";
  const std::string end =
      ParseErrorFile(R"({"message": {"message": "E", "extraInfo": {"py_callstack": ")" + lines +
                     R"("}}})")
          .traceback;
  EXPECT_LE(end.size(), kMaxTracebackBytes);
  EXPECT_EQ(end.substr(0, 8), "  frame ");
  EXPECT_EQ(end.substr(end.size() - 4), "4999");
}

TEST(ParseErrorFile, IsEmptyForAnythingElse) {
  for (const char* json : {"", "{", "[]", "7", "null", "{}", R"({"message": 7})",
                           R"({"message": {"message": 7}})", R"({"message": {}})", "\xff\xfe"}) {
    EXPECT_EQ(ParseErrorFile(json).message, "") << json;
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
  EXPECT_EQ(ReadErrorFile(path_, 10), "");  // There is no file.
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(ReadErrorFile(path_, 10), "");  // It does not wait for a writer.
  ::unlink(path_.c_str());
  ASSERT_EQ(::symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_EQ(ReadErrorFile(path_, 10), "");
}

}  // namespace
}  // namespace hlaunch
