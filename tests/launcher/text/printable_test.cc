// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PrintableLines, KeepsTheLastLines) {
  EXPECT_THAT(PrintableLines("a\nb\n\nc\n\n \n", 3), ElementsAre("b", "", "c"));
  EXPECT_THAT(PrintableLines("", 3), IsEmpty());
  EXPECT_THAT(PrintableLines("\n\n", 3), IsEmpty());
}

TEST(PrintableLine, IsSafeForATerminal) {
  const struct {
    absl::string_view text, clean;
  } rows[] = {
      {"plain", "plain"},
      {"\x1b[1;31mred\x1b[0m", "red"},
      {"a\x1b]0;title", "a0;title"},
      {"cut\x1b[31", "cut"},
      {"cut\x1b", "cut"},
      {"10%\r50%\r100%", "100%"},
      {"dos\r", "dos"},
      {"a\tb", "a b"},
      {"bell\x07.", "bell?."},
      {absl::string_view("nul\0x", 5), "nul?x"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"a\xc2\x9b"
       "2Jb",
       "a\\u009b2Jb"},
      {"a\xe2\x80\xae"
       "b",
       "a\\u202eb"},
      {"caf\xe9", "caf\\xe9"},
      {" first\nsecond", "first"},
  };
  for (const auto& row : rows) EXPECT_EQ(PrintableLine(row.text), row.clean);
}

TEST(PrintableLine, CutsBetweenCharacters) {
  EXPECT_EQ(PrintableLine(std::string(500, 'a')), std::string(400, 'a') + "...");
  std::string wide(399, 'a');
  for (int i = 0; i < 20; ++i) wide += "\xc3\xa9";
  EXPECT_EQ(PrintableLine(wide), std::string(399, 'a') + "...");
}

}  // namespace
}  // namespace hlaunch
