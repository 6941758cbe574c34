// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/adopt/adopt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/command/adopt/python_side.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::StatusOr<AdoptOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "hlaunch");
  const int count = static_cast<int>(words.size());
  return std::string(words[1]) == "run" ? ParseRunOptions(count, words.data())
                                        : ParseAdoptOptions(count, words.data());
}

std::string Refusal(const std::vector<const char*>& words) {
  return std::string(Parse(words).status().message());
}

TEST(ParseRunOptions, LeavesTheProgramsWordsAlone) {
  EXPECT_THAT(Parse({"run", "accelerate", "launch", "--help", "t.py"})->words,
              ElementsAre("accelerate", "launch", "--help", "t.py"));
  EXPECT_THAT(Parse({"run", "--", "python"})->words, ElementsAre("python"));
}

TEST(ParseRunOptions, RefusesWhatIsNoProgram) {
  EXPECT_THAT(Refusal({"run"}), HasSubstr("hlaunch run needs a program"));
  EXPECT_THAT(Refusal({"run", "--nnodes=2", "t.py"}), HasSubstr("--nnodes"));
}

TEST(ParseAdoptOptions, PassesItsWordsOn) {
  EXPECT_THAT(Parse({"adopt"})->words, IsEmpty());
  EXPECT_THAT(Parse({"adopt", "--links=torchrun,mpirun"})->words,
              ElementsAre("--links", "torchrun,mpirun"));
  EXPECT_THAT(Parse({"adopt", "--undo"})->words, ElementsAre("--undo"));
  EXPECT_THAT(Parse({"adopt", "--show"})->words, ElementsAre("--show"));
}

TEST(ParseAdoptOptions, RefusesWordsThatContradict) {
  EXPECT_THAT(Refusal({"adopt", "--undo", "--show"}), HasSubstr("give one of them"));
  EXPECT_THAT(Refusal({"adopt", "--links=python"}),
              HasSubstr("expected none, or some of torchrun"));
  EXPECT_THAT(Refusal({"adopt", "x"}), HasSubstr("hlaunch ./adopt"));
}

TEST(AdoptHelp, HasExitCodesAndOptions) {
  for (const char* command : {"run", "adopt"}) {
    const std::string help = *Parse({command, "--help"})->text_to_print;
    EXPECT_THAT(help, HasSubstr("Exit code:"));
    EXPECT_THAT(help, HasSubstr("HLAUNCH_TORCHRUN"));
  }
}

class FindPythonSideTest : public testing::Test {
 protected:
  FindPythonSideTest() : root_(fs::path(testing::TempDir()) / absl::StrCat("side", ::getpid())) {
    fs::create_directories(root_ / "bin");
  }
  ~FindPythonSideTest() override { fs::remove_all(root_); }

  absl::StatusOr<std::string> Find() { return FindPythonSide((root_ / "bin/hlaunch").string()); }

  const fs::path root_;
};

TEST_F(FindPythonSideTest, LooksWhereEachKindOfInstallationHasIt) {
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("install a package of hlaunch"));
  for (const char* place :
       {"python", "lib/python3/dist-packages", "lib/python3.11/site-packages"}) {
    fs::create_directories(root_ / place / "hlaunch/adopt/hlaunch_adopt");
    EXPECT_EQ(*Find(), (root_ / place / "hlaunch/adopt").string());
  }
}

TEST(WithFolder, PutsItAtTheEndOnce) {
  EXPECT_EQ(WithFolder("", "/side"), "/side");
  EXPECT_EQ(WithFolder(":/a::/b", "/side"), ":/a::/b:/side")
      << "an empty one is the working directory";
  EXPECT_EQ(WithFolder("/side:/b", "/side"), "/side:/b");
}

}  // namespace
}  // namespace hlaunch
