// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/scheduler/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kMany = 1 << 16;

// The hosts as "n1 n2", or the error in "<>".
std::string Expanded(absl::string_view text, size_t max_hosts = kMany) {
  const auto hosts = ExpandHostlist(text, max_hosts);
  if (hosts.ok()) return absl::StrJoin(*hosts, " ");
  EXPECT_TRUE(absl::IsInvalidArgument(hosts.status()));
  return absl::StrCat("<", std::string(hosts.status().message()), ">");
}

TEST(ExpandHostlist, KeepsOrderAndRepeatedHosts) {
  EXPECT_EQ(Expanded("b,a,,b n[3,1-2,1]\nc"), "b a b n3 n1 n2 n1 c");
  EXPECT_EQ(Expanded(""), "");
  EXPECT_EQ(Expanded(" , "), "");
}

TEST(ExpandHostlist, TakesTheWidthOfEachLowEnd) {
  EXPECT_EQ(Expanded("n[001-3,08-11,8-011,1,2-3,05]"),
            "n001 n002 n003 n08 n09 n10 n11 n8 n9 n10 n11 n1 n2 n3 n05");
  EXPECT_EQ(Expanded("n[99-101]"), "n99 n100 n101");
}

TEST(ExpandHostlist, CountsSeveralBracketsAsSlurmDoes) {
  EXPECT_EQ(Expanded("n[1-2]-r[3-4]"), "n1-r3 n1-r4 n2-r3 n2-r4");
  EXPECT_EQ(Expanded("a[1-2]b[1-2]c[1-2]"),
            "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2");
}

TEST(ExpandHostlist, TakesBracketsWithoutTextAndTextWithoutBrackets) {
  EXPECT_EQ(Expanded("[1-3],10.0.0.[1-2],n1-3"), "1 2 3 10.0.0.1 10.0.0.2 n1-3");
}

TEST(ExpandHostlist, NamesWhatIsWrong) {
  EXPECT_EQ(Expanded("a,n[3-1]"), "<'3-1' in brackets goes down>");
  EXPECT_EQ(Expanded("n[1-3]-ib"), "<'n[1-3]-ib': text behind the last bracket>");
  EXPECT_EQ(Expanded("n[1-"), "<'n[1-': a [ without its ]>");
  EXPECT_EQ(Expanded("n1]"), "<'n1]': a ] without its [>");
  for (const char* wrong : {"n[]", "n[,1]", "n[1,]", "n[a]", "n[1-]", "n[-1]", "n[1--2]", "n[1:2]",
                            "n[[1]", "n[1234567890123456789]"}) {
    EXPECT_THAT(Expanded(wrong), HasSubstr("expected a number or LOW-HIGH")) << wrong;
  }
  EXPECT_EQ(Expanded("a\x01"), "<'a?': expected printable ASCII>");
  EXPECT_EQ(Expanded("n[1- 2]"), "<'n[1- 2]': expected printable ASCII>");
}

TEST(ExpandHostlist, BoundsWhatItMakes) {
  EXPECT_EQ(Expanded("n[1-3]", 2), "<more than 2 hosts>");
  EXPECT_EQ(Expanded("a,b,c", 2), "<more than 2 hosts>");
  EXPECT_EQ(Expanded("n[0-65536]"), "<'0-65536' in brackets is more than 65536 numbers>");
  EXPECT_EQ(Expanded("n[0-65535][0-65535][0-65535][0-65535]"), "<more than 65536 hosts>");
  EXPECT_THAT(Expanded("n[1-65536]" + std::string(300, '0')), HasSubstr("behind the last"));
  EXPECT_THAT(Expanded(std::string(300, 'n') + "[1-65536]"), HasSubstr("at most 255 characters"));
  EXPECT_EQ(Expanded(std::string((1 << 20) + 1, 'n')), "<longer than a mebibyte>");
}

TEST(ExpandHostlist, BoundsTheLongestNameThatBracketsMake) {
  const std::string most(253, 'n');
  EXPECT_THAT(Expanded(most + "[9-10]"), testing::EndsWith("n10"));
  for (const char* brackets : {"[9-100]", "[100,9]", "[9,100]", "[9][9][9]", "[009]"}) {
    EXPECT_THAT(Expanded(most + brackets), HasSubstr("at most 255 characters")) << brackets;
  }
}

TEST(ExpandHostlist, ShowsTheBeginningOfALongWord) {
  const std::string name(59, 'n');
  EXPECT_EQ(Expanded(name + "]"), absl::StrCat("<'", name, "]': a ] without its [>"));
  EXPECT_EQ(Expanded(name + "n]"), absl::StrCat("<'", name, "n...': a ] without its [>"));
}

TEST(ExpandHostlist, MakesAsManyHostsAsItMay) {
  EXPECT_EQ(Expanded("n[1-2],m", 3), "n1 n2 m");
  EXPECT_EQ(Expanded("n[1-2][1-2]", 4), "n11 n12 n21 n22");
  EXPECT_EQ(Expanded("n[1-2][1-2]", 3), "<more than 3 hosts>");
  EXPECT_THAT(Expanded("n[0-65535]"), testing::EndsWith(" n65535"));
  EXPECT_EQ(Expanded("n[123456789012345678]"), "n123456789012345678");
  EXPECT_THAT(Expanded(std::string(1 << 20, 'n')), HasSubstr("at most 255 characters"));
}

TEST(ExpandCounts, RepeatsWhatIsInParentheses) {
  EXPECT_THAT(*ExpandCounts("3,1(x2)", kMany), ElementsAre(3, 1, 1));
  EXPECT_THAT(*ExpandCounts("2", kMany), ElementsAre(2));
  EXPECT_THAT(*ExpandCounts("7,0(x2)", 3), ElementsAre(7, 0, 0));
}

TEST(ExpandCounts, RefusesWhatIsNone) {
  for (const char* wrong : {"", ",", "3,", "x2", "1(x0)", "1(x2", "1(2)", "1(x2)3", "-1", "1(x-2)",
                            "99999999999", "1(x99999999999)"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ExpandCounts(wrong, kMany).status())) << wrong;
  }
  EXPECT_EQ(ExpandCounts("1(x65537)", kMany).status().message(), "more than 65536 nodes");
  EXPECT_EQ(ExpandCounts("1(x65536),1(x65536)", kMany).status().message(), "more than 65536 nodes");
}

}  // namespace
}  // namespace hlaunch
