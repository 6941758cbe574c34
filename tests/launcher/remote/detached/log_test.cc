// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/output/log_file.h"
#include "launcher/remote/detached/line_printer.h"
#include "launcher/remote/detached/log_line.h"
#include "launcher/remote/detached/log_reader.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kTime[] = "2026-11-25T02:00:00.123Z";

TEST(ReadLogLine, GivesWhatMakeLogLineWasGiven) {
  const std::string line = MakeLogLine(kTime, STDERR_FILENO, false, "a  b ");
  EXPECT_EQ(line, "2026-11-25T02:00:00.123Z stderr P a  b \n");
  const LogLine read = ReadLogLine(line.substr(0, line.size() - 1));
  EXPECT_EQ(read.time, kTime);
  EXPECT_EQ(read.fd, STDERR_FILENO);
  EXPECT_FALSE(read.whole);
  EXPECT_EQ(read.text, "a  b ");
  EXPECT_EQ(ReadLogLine("2026-11-25T02:00:00.123Z stdout F ").text, "");
}

TEST(LinePrinter, JudgesALineOfSeveralPartsByTheTimeOfTheFirst) {
  const DetachedOptions options;
  LinePrinter printer(options, "2026-11-25T02:00:01", /*both_streams=*/true);
  EXPECT_FALSE(printer.IsWanted({"2026-11-25T02:00:00.900Z", 1, false, "a line that"}));
  EXPECT_FALSE(printer.IsWanted({"2026-11-25T02:00:01.100Z", 1, true, " goes on"}));
  EXPECT_TRUE(printer.IsWanted({"2026-11-25T02:00:01.200Z", 1, true, "another"}));
}

TEST(ReadLogLine, TakesOtherLinesAsTheyAre) {
  const LogLine read = ReadLogLine("[hlaunch: 5 bytes are missing here: disk]");
  EXPECT_EQ(read.text, "[hlaunch: 5 bytes are missing here: disk]");
  EXPECT_TRUE(read.whole);
}

TEST(RanksOfText, AreThoseBeforeTheLine) {
  EXPECT_THAT(RanksOfText("[3] loss 0.1"), ElementsAre(3));
  EXPECT_THAT(RanksOfText("[0-2,7] same"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(RanksOfText("2026-11-25T02:00:00.123Z [12] x"), ElementsAre(12));
  for (const char* text : {"", "hlaunch: [3] x", "[default3]: x", "[3]x", "[] x", "x [3] y"}) {
    EXPECT_THAT(RanksOfText(text), IsEmpty()) << text;
  }
}

TEST(LogLineCutter, WaitsForTheEndOfALineAndCutsALongOne) {
  LogLineCutter cutter(STDOUT_FILENO);
  EXPECT_EQ(cutter.Take(kTime, "a\nb"), absl::StrCat(kTime, " stdout F a\n"));
  EXPECT_TRUE(cutter.waits());
  EXPECT_EQ(cutter.Take(kTime, "c\n\n"),
            absl::StrCat(kTime, " stdout F bc\n", kTime, " stdout F \n"));
  EXPECT_EQ(cutter.Flush(kTime), "");
  cutter.Take(kTime, "50%");
  EXPECT_EQ(cutter.Flush(kTime), absl::StrCat(kTime, " stdout P 50%\n"));
  const std::string lines = cutter.Take(kTime, std::string(40'000, 'x') + "\n");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
}

// A directory that only this test uses.
class LogReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hlaunch-log-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/log"; }
  static std::vector<std::string> Read(LogReader& reader) {
    std::vector<std::string> texts;
    while (const auto line = reader.Next()) texts.push_back(line->text);
    return texts;
  }

  std::string directory_;
};

TEST_F(LogReaderTest, FollowsAFileThatComesLaterAndIsPutAside) {
  LogReader reader(path());
  EXPECT_THAT(Read(reader), IsEmpty());
  LogFile file(path(), {120, 2}, std::make_shared<LogLosses>());
  std::vector<std::string> wanted, found;
  for (int n = 0; n < 50; ++n) {
    wanted.push_back(absl::StrCat("line ", n));
    file.Write(MakeLogLine(kTime, STDOUT_FILENO, true, wanted.back()));
    if (n % 3 != 0) continue;  // Several files may appear between two looks.
    for (std::string& text : Read(reader)) found.push_back(std::move(text));
  }
  for (std::string& text : Read(reader)) found.push_back(std::move(text));
  EXPECT_EQ(found, wanted);
}

TEST_F(LogReaderTest, BeginsWithTheOldestThatIsKept) {
  LogFile file(path(), {120, 2}, std::make_shared<LogLosses>());
  for (int n = 0; n < 50; ++n) {
    file.Write(MakeLogLine(kTime, STDOUT_FILENO, true, absl::StrCat("line ", n)));
  }
  LogReader reader(path());
  const std::vector<std::string> found = Read(reader);
  ASSERT_GE(found.size(), 4u);
  EXPECT_LE(found.size(), 9u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], absl::StrCat("line ", 50 - found.size() + i));
  }
}

}  // namespace
}  // namespace hlaunch
