// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/read_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "launcher/cluster/tasks/user_file.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

class ReadLogTest : public ::testing::Test {
 protected:
  ReadLogTest() {
    char name[] = "/tmp/read-log-XXXXXX";
    path_ = ::mkdtemp(name);
    folder_ = OpenFolder(path_).value();
  }
  ~ReadLogTest() override { fs::remove_all(path_); }

  void Append(const std::string& text, const char* name = "log") {
    std::ofstream(path_ / name, std::ios::app) << text;
  }
  void Rotate() {
    fs::rename(path_ / "log", path_ / "log.1");
    Append("");
  }
  LogAnswer Ask(const std::string& position, int tail = -1, bool over = false) {
    LogQuestion question;
    question.position = position;
    question.tail = tail;
    const auto answer = ReadLog(folder_.get(), ::getuid(), question, over);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(LogAnswer());
  }

  fs::path path_;
  UniqueFd folder_;
};

TEST_F(ReadLogTest, GoesOnWhereTheLastAnswerEnded) {
  Append("one\ntwo\n");
  const LogAnswer first = Ask("");
  EXPECT_EQ(first.text, "one\ntwo\n");
  EXPECT_EQ(Ask(first.position).text, "");
  Append("three\n");
  EXPECT_EQ(Ask(first.position).text, "three\n");
}

TEST_F(ReadLogTest, GivesWholeLinesOnly) {
  Append("one\ntw");
  const LogAnswer first = Ask("");
  EXPECT_EQ(first.text, "one\n");
  Append("o\n");
  EXPECT_EQ(Ask(first.position).text, "two\n");
}

TEST_F(ReadLogTest, GivesTheRestOnceNothingIsWrittenAnyMore) {
  Append("one\ntw");
  const LogAnswer all = Ask("", -1, true);
  EXPECT_EQ(all.text, "one\ntw");
  EXPECT_TRUE(all.ended);
  EXPECT_TRUE(Ask(all.position, -1, true).ended);
}

TEST_F(ReadLogTest, FollowsAcrossARotation) {
  Append("2026 one\n");
  const LogAnswer first = Ask("");
  Append("2026 two\n");
  Rotate();
  Append("2027 three\n");
  const LogAnswer next = Ask(first.position);
  EXPECT_EQ(next.text, "2026 two\n2027 three\n");
  EXPECT_FALSE(next.lost);
}

TEST_F(ReadLogTest, SaysWhatIsLost) {
  Append("2026 one\n");
  const LogAnswer first = Ask("");
  fs::remove(path_ / "log");
  Append("2027 nine\n2027 ten\n");  // It most likely has the same inode.
  const LogAnswer next = Ask(first.position);
  EXPECT_TRUE(next.lost);
  EXPECT_EQ(next.text, "2027 nine\n2027 ten\n");
}

TEST_F(ReadLogTest, BeginsWithTheLastLines) {
  Append("a\nb\n");
  Rotate();
  Append("c\nd\n");
  EXPECT_EQ(Ask("", 1).text, "d\n");
  EXPECT_EQ(Ask("", 2).text, "c\nd\n");
  EXPECT_EQ(Ask("", 3).text, "b\nc\nd\n");
  EXPECT_EQ(Ask("", 9).text, "a\nb\nc\nd\n");
  const LogAnswer none = Ask("", 0);
  EXPECT_EQ(none.text, "");
  Append("e\n");
  EXPECT_EQ(Ask(none.position).text, "e\n");
}

TEST_F(ReadLogTest, ReadsOneFileThatWasPutAsideAndNoMore) {
  Append("a\n", "log.2");
  Append("b\n", "log.1");
  Append("c\n");
  EXPECT_EQ(Ask("").text, "b\nc\n");
  EXPECT_EQ(Ask("", 9).text, "b\nc\n");
}

TEST_F(ReadLogTest, SeeksTheLastLinesInFourMebibytesOfAllFiles) {
  const std::string line(1023, 'x');
  for (int i = 0; i < 3 << 10; ++i) Append(line + "\n");
  Rotate();
  for (int i = 0; i < 2 << 10; ++i) Append(line + "\n");
  std::string got, position;
  LogAnswer answer = Ask("", 1 << 20, true);
  for (int i = 0; i < 100 && !answer.ended; ++i) {
    got += answer.text;
    answer = Ask(answer.position, -1, true);
  }
  got += answer.text;
  EXPECT_TRUE(answer.ended);
  EXPECT_LE(got.size(), size_t{4} << 20);
  EXPECT_GT(got.size(), (size_t{4} << 20) - 2048);
  EXPECT_EQ(got.substr(0, got.find('\n')), line);  // It begins with a whole line.
}

TEST_F(ReadLogTest, GivesMuchInSeveralAnswers) {
  std::string all;
  for (int i = 0; i < 40'000; ++i) absl::StrAppend(&all, "line ", i, "\n");
  Append(all);
  std::string got, position;
  for (int i = 0; i < 100; ++i) {
    const LogAnswer answer = Ask(position, -1, true);
    EXPECT_LE(answer.text.size(), kMaxLogText);
    got += answer.text;
    position = answer.position;
    if (answer.ended) break;
  }
  EXPECT_EQ(got, all);
}

TEST_F(ReadLogTest, ALineThatFitsNoAnswerComesInPieces) {
  const std::string all(3 * kMaxLogText + 5, 'x');
  Append(all + "\n");
  std::string got, position;
  for (int i = 0; i < 10; ++i) {
    const LogAnswer answer = Ask(position);
    got += answer.text;
    position = answer.position;
  }
  EXPECT_EQ(got, all + "\n");
}

TEST_F(ReadLogTest, ThereIsNothingBeforeTheFirstLine) {
  EXPECT_EQ(Ask("").text, "");
  EXPECT_FALSE(Ask("").ended);
  EXPECT_TRUE(Ask("", -1, true).ended);
}

TEST_F(ReadLogTest, FollowsNoLinkAndWaitsForNoPipe) {
  fs::create_symlink("/etc/passwd", path_ / "log");
  EXPECT_EQ(Ask("").text, "");
  fs::remove(path_ / "log");
  ASSERT_EQ(::mkfifo((path_ / "log").c_str(), 0600), 0);
  EXPECT_EQ(Ask("").text, "");
}

TEST_F(ReadLogTest, ReadsNobodyElsesFile) {
  Append("secret\n");
  LogQuestion question;
  const auto answer = ReadLog(folder_.get(), ::getuid() + 1, question, false);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "");
}

TEST_F(ReadLogTest, RefusesAPositionThatIsNone) {
  LogQuestion question;
  question.position = "1:2";
  EXPECT_TRUE(
      absl::IsInvalidArgument(ReadLog(folder_.get(), ::getuid(), question, false).status()));
}

}  // namespace
}  // namespace hlaunch
