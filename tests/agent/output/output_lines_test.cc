// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/output_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

// What a cutter prints if `parts` come one by one, including the end.
std::string Cut(const std::vector<absl::string_view>& parts, const std::string& prefix = "[3] ") {
  LineCutter cutter(prefix);
  std::string out;
  for (const absl::string_view part : parts) out += cutter.Feed(part);
  return out + cutter.Finish();
}

std::string TailOf(const std::vector<std::string>& parts) {
  OutputTail tail;
  for (const std::string& part : parts) tail.Add(part);
  return tail.Text();
}

std::vector<std::string> Entries(const std::vector<std::string>& parts) {
  JournalCutter cutter("[3] ", {{"HLAUNCH_RANK", "3"}});
  std::vector<std::string> entries;
  for (const std::string& part : parts) {
    for (std::string& entry : cutter.Feed(part)) entries.push_back(std::move(entry));
  }
  for (std::string& entry : cutter.Finish()) entries.push_back(std::move(entry));
  return entries;
}

TEST(JournalCutter, MakesAnEntryOfEveryLineThatSaysSomething) {
  EXPECT_THAT(Entries({"a", "b\n\nc\nd"}), testing::ElementsAre("MESSAGE=[3] ab\nHLAUNCH_RANK=3\n",
                                                                "MESSAGE=[3] c\nHLAUNCH_RANK=3\n",
                                                                "MESSAGE=[3] d\nHLAUNCH_RANK=3\n"));
  EXPECT_THAT(Entries({"\n", ""}), testing::IsEmpty());
}

TEST(JournalCutter, TakesTheLastStateOfAProgressBar) {
  EXPECT_THAT(Entries({"10%\r20%\r", "30%\n"}),
              testing::ElementsAre("MESSAGE=[3] 30%\nHLAUNCH_RANK=3\n"));
}

TEST(JournalCutter, CutsALineThatNoDatagramCarries) {
  const auto entries = Entries({std::string(JournalCutter::kMaxLine + 1, 'x') + "\n"});
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1], "MESSAGE=[3] x\nHLAUNCH_RANK=3\n");
}

TEST(LineCutter, PrefixesEveryLine) {
  EXPECT_EQ(Cut({"a\nb\n", "c\n"}), "[3] a\n[3] b\n[3] c\n");
  EXPECT_EQ(Cut({"\n\n"}), "[3] \n[3] \n");
  EXPECT_EQ(Cut({}), "");
}

TEST(LineCutter, HoldsALineUntilItIsWhole) {
  LineCutter cutter("[3] ");
  EXPECT_EQ(cutter.Feed("half"), "");
  EXPECT_EQ(cutter.Feed(" whole\nnext"), "[3] half whole\n");
  EXPECT_EQ(cutter.Finish(), "[3] next\n");
  EXPECT_EQ(cutter.Finish(), "");
}

TEST(LineCutter, LetsProgressBarsThrough) {
  EXPECT_EQ(Cut({"10%\r", "20%\r30%\n"}), "[3] 10%\r[3] 20%\r[3] 30%\n");
  EXPECT_EQ(Cut({"\r10%", "\r20%", "\r30%\n"}), "[3] 10%\r[3] 20%\r[3] 30%\n");
}

TEST(LineCutter, PassesEveryByteWhereThereIsNoPrefixAndNoTerminal) {
  for (const std::vector<absl::string_view>& parts : std::vector<std::vector<absl::string_view>>{
           {"a\r\rb\n"}, {"\rabc\n"}, {"\r", "\r\n"}, {"a\r", "\n\rb\n"}, {"\r\r\r\n"}}) {
    LineCutter cutter("");
    cutter.AlwaysCut();
    std::string out;
    for (const absl::string_view part : parts) out += cutter.Feed(part);
    EXPECT_EQ(out + cutter.Finish(), absl::StrJoin(parts, ""));
  }
}

TEST(LineCutter, KeepsCrLfTogether) {
  EXPECT_EQ(Cut({"a\r\nb\r\n"}), "[3] a\r\n[3] b\r\n");
  EXPECT_EQ(Cut({"a\r", "\nb\r", "c\n"}), "[3] a\r\n[3] b\r[3] c\n");
}

TEST(LineCutter, PassesAnyByteOn) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(LineCutter("").Feed(all), all) << "without a prefix nothing is touched";
  const std::string out = Cut({absl::string_view("a\0b\xff\n", 5)});
  EXPECT_EQ(out, std::string("[3] a\0b\xff\n", 9));
}

TEST(LineCutter, EndsTheLastLineAlsoWhereThereIsNoPrefix) {
  EXPECT_EQ(Cut({"a", "b"}, ""), "ab\n");
  EXPECT_EQ(Cut({"a", "b\n"}, ""), "ab\n");
  EXPECT_EQ(Cut({}, ""), "");
  LineCutter cutter("");
  cutter.Feed("as it is");
  EXPECT_EQ(cutter.Finish(/*keeps_end=*/true), "");
}

TEST(LineCutter, CutsEndlessLinesInPieces) {
  const std::string line(2 * kMaxLineBytes + 5, 'x');
  const std::string piece = absl::StrCat("[3] ", std::string(kMaxLineBytes, 'x'), "\n");
  EXPECT_EQ(Cut({line, "\n"}), absl::StrCat(piece, piece, "[3] xxxxx\n"));
  // A line that just fits stays whole, however it comes.
  const std::string fits(kMaxLineBytes, 'x');
  EXPECT_EQ(Cut({fits, "\n"}), piece);
  EXPECT_EQ(Cut({absl::StrCat(fits, "\n")}), piece);
  std::string bytewise;
  LineCutter cutter("[3] ");
  for (const char c : line) bytewise += cutter.Feed(absl::string_view(&c, 1));
  EXPECT_EQ(bytewise + cutter.Finish(), absl::StrCat(piece, piece, "[3] xxxxx\n"));
}

TEST(LineCutter, WithoutAPrefixAnEndlessLineStaysOne) {
  LineCutter cutter("");
  cutter.AlwaysCut();
  const std::string line(2 * kMaxLineBytes + 5, 'x');
  std::string out = cutter.Feed(line);
  EXPECT_EQ(out.size(), 2 * kMaxLineBytes);
  out += cutter.Feed("\nlast");
  EXPECT_EQ(out + cutter.Finish(/*keeps_end=*/true), absl::StrCat(line, "\nlast"));
}

// The lines that a terminal shows for `text`, which holds no escapes but "erase the line".
std::vector<std::string> Shown(const std::string& text) {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string& line = lines.back();
    if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text.compare(i, 3, "\x1b[K") == 0) {
      line.resize(column);
      i += 2;
    } else {
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = text[i];
    }
  }
  return lines;
}

using ::testing::ElementsAre;

TEST(LineCutterOnATerminal, LetsBarsTakeTurnsOnOneLine) {
  const auto line = std::make_shared<TerminalLine>();
  LineCutter zero("[0] ", line);
  LineCutter one("[1] ", line);
  std::string out = zero.Feed("\r  0%|          |");
  EXPECT_THAT(Shown(out), ElementsAre("[0]   0%|          |")) << "before the next state comes";
  out += one.Feed("\r 10%|#|");
  EXPECT_THAT(Shown(out), ElementsAre("[1]  10%|#|")) << "nothing of the longer bar is left";
  out += one.Feed("\r 20%|##");
  out += one.Feed("|");
  EXPECT_THAT(Shown(out), ElementsAre("[1]  20%|##|"));
  out += zero.Feed("\r100%|##########|\n");
  EXPECT_THAT(Shown(out), ElementsAre("[0] 100%|##########|", ""));
  out += one.Feed("\r100%|##|");
  out += zero.Feed("done\n");
  EXPECT_THAT(Shown(out), ElementsAre("[0] 100%|##########|", "[0] done", ""));
  out += one.Finish();
  EXPECT_THAT(Shown(out), ElementsAre("[0] 100%|##########|", "[0] done", "[1] 100%|##|", ""));
}

TEST(LineCutterOnATerminal, KeepsWhatEndsInCr) {
  const auto line = std::make_shared<TerminalLine>();
  LineCutter zero("[0] ", line);
  std::string out = zero.Feed("10%\r");
  out += zero.Feed("20%\r");
  out += zero.Feed("\nnext\n");
  EXPECT_THAT(Shown(out), ElementsAre("[0] 20%", "[0] next", ""));
}

TEST(LineFilter, PicksLinesThatHoldAWord) {
  LineFilter filter("[3] ", {"loss", "acc"});
  EXPECT_EQ(filter.Feed("step 1\nlo"), "");
  EXPECT_EQ(filter.Feed("ss 2\nnothing\naccuracy 3\n"), "[3] loss 2\n[3] accuracy 3\n");
  EXPECT_EQ(filter.Feed("no end of loss"), "");
  EXPECT_EQ(filter.Finish(), "[3] no end of loss\n");
  EXPECT_EQ(filter.Finish(), "");
}

TEST(OutputTail, KeepsTheLastLines) {
  std::vector<std::string> lines;
  for (int i = 0; i < 100; ++i) lines.push_back(absl::StrCat("line ", i, "\n"));
  const std::string text = TailOf(lines);
  EXPECT_EQ(text.substr(0, 8), "line 80\n");
  EXPECT_EQ(text.substr(text.size() - 8), "\nline 99");
  EXPECT_EQ(TailOf({}), "");
  EXPECT_EQ(TailOf({"one"}), "one");
}

TEST(OutputTail, IsBounded) {
  const std::string text = TailOf(std::vector<std::string>(1000, std::string(1000, 'x')));
  EXPECT_EQ(text, std::string(kMaxTailBytes, 'x'));
  const std::string lines = TailOf(std::vector<std::string>(30, std::string(999, 'x') + "\n"));
  EXPECT_LE(lines.size(), kMaxTailBytes);
  EXPECT_EQ(lines.find('\n'), 999u) << "begins with a whole line";
}

TEST(OutputTail, KeepsTheHeadOfALineThatIsFarTooLong) {
  OutputTail tail;
  tail.Add("Traceback:\nValueError: bad batch: ");
  for (int i = 0; i < 1000; ++i) tail.Add(std::string(5000, '7'));
  tail.Add("\nafter it");
  const std::string text = tail.LongText();
  EXPECT_EQ(text.substr(0, 36), "Traceback:\nValueError: bad batch: 77");
  EXPECT_EQ(text.substr(text.size() - 10), "7\nafter it");
  EXPECT_LE(text.size(), 2 * kMaxTailBytes);
  const std::string whole = "x\nValueError: " + std::string(1 << 20, '7') + "\n";
  OutputTail at_once;
  at_once.Add(whole);
  EXPECT_EQ(at_once.LongText().substr(0, 14), "x\nValueError: ");
}

TEST(OutputTail, IsPrintable) {
  EXPECT_EQ(TailOf({"\x1b[31mred\x1b[0m \a\t."}), "red ?\t.");
  const std::string greeting = "gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\xa5 ";
  EXPECT_EQ(TailOf({greeting + "\xff\xc3"}), greeting + "??");
  EXPECT_EQ(TailOf({std::string("a\0b", 3)}), "a?b");
  EXPECT_EQ(TailOf({"\xed\xa0\x80\xc0\xaf"}), "?????") << "surrogate, overlong";
}

TEST(OutputTail, ShowsTheLastStateOfAProgressBar) {
  EXPECT_EQ(TailOf({"start\n10%\r20%\r", "30%\r"}), "start\n30%");
  EXPECT_EQ(TailOf({"windows\r\nlines\r\n"}), "windows\nlines");
}

TEST(OutputTail, NeverSplitsACharacter) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\xe2\x82\xac";
  const std::string tail = TailOf({text});
  EXPECT_LE(tail.size(), kMaxTailBytes);
  EXPECT_EQ(tail.size() % 3, 0u);
  EXPECT_EQ(tail.substr(0, 3), "\xe2\x82\xac");
}

}  // namespace
}  // namespace hlaunch
