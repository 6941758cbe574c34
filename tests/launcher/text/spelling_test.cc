// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/spelling.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

TEST(NearestSpelling, FindsNoMeaningInAFewLetters) {
  const std::vector<std::string> known = {"--tls", "--json", "--nnodes"};
  EXPECT_EQ(NearestSpelling("--lr", known), "");
  EXPECT_EQ(NearestSpelling("--seed", known), "");
  EXPECT_EQ(NearestSpelling("--jsn", known), "--json");
  EXPECT_EQ(NearestSpelling("--nnoeds", known), "--nnodes");
  EXPECT_EQ(NearestSpelling("trian", {"train"}), "train");
}

TEST(CheckDashes, SaysWhatToTypeForDashesOfCopiedText) {
  const struct {
    const char* copied;
    const char* type;
  } rows[] = {{"–nproc-per-node", "--nproc-per-node"},
              {"—standalone", "--standalone"},
              {"–-nnodes", "--nnodes"},
              {"--nproc–per–node", "--nproc-per-node"},
              {"–n", "-n"},
              {"−np", "-np"}};
  for (const auto& row : rows) {
    EXPECT_EQ(
        CheckDashes(row.copied).message(),
        absl::StrCat(row.copied, " has a dash that is no hyphen, as copied text may have: type ",
                     row.type));
  }
  EXPECT_EQ(CheckDashes("–role=a–b").message(),
            "–role has a dash that is no hyphen, as copied text may have: type --role=a–b");
}

TEST(CheckDashes, LeavesOtherWordsAlone) {
  for (const char* word : {"--nnodes", "-n", "train.py", "a–b.py", "--role=a–b", "–", "", "—"}) {
    EXPECT_TRUE(CheckDashes(word).ok()) << word;
  }
}

}  // namespace
}  // namespace hlaunch
