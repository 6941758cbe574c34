// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/termination_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

TEST(TerminationMessage, HasTheFirstLinesThatFit) {
  EXPECT_EQ(TerminationMessage({}), "");
  EXPECT_EQ(TerminationMessage({"a", "b"}), "a\nb\n");
  const std::string half(kMaxTerminationBytes / 2, 'x');
  EXPECT_EQ(TerminationMessage({"cause", half, half, "more"}), absl::StrCat("cause\n", half, "\n"));
}

TEST(TerminationMessage, CutsALongCauseBetweenCharacters) {
  std::string line;
  while (line.size() <= kMaxTerminationBytes) line += "x\u00fc";  // Three bytes.
  const std::string message = TerminationMessage({line});
  EXPECT_EQ(message.size(), kMaxTerminationBytes);
  EXPECT_EQ(message.back(), 'x');
  EXPECT_EQ(TerminationMessage({"x" + line}).size(), kMaxTerminationBytes);
  EXPECT_EQ(TerminationMessage({"xx" + line}).size(), kMaxTerminationBytes - 1);
}

TEST(KeepTerminationMessage, ReplacesWhatTheFileHolds) {
  const std::string path = absl::StrCat(testing::TempDir(), "/hlaunch_end_", ::getpid());
  std::ofstream(path) << "an older and longer message";
  EXPECT_EQ(KeepTerminationMessage(path, "why\n"), "");
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "why\n");
  ::unlink(path.c_str());
}

TEST(KeepTerminationMessage, FollowsNoLink) {
  const std::string path = absl::StrCat(testing::TempDir(), "/hlaunch_precious_", ::getpid());
  const std::string link = absl::StrCat(path, "_link");
  std::ofstream(path) << "precious";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_THAT(KeepTerminationMessage(link, "why\n"), HasSubstr("it is a link"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious");
  ::unlink(link.c_str());
  ::unlink(path.c_str());
}

TEST(KeepTerminationMessage, MakesNoFileAndSaysSoIfOneWasNamed) {
  EXPECT_EQ(KeepTerminationMessage("/nowhere/end", "why"),
            "cannot write the termination message to /nowhere/end: No such file or directory");
  const std::string pipe = absl::StrCat(testing::TempDir(), "/hlaunch_pipe_", ::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(KeepTerminationMessage(pipe, "why"), HasSubstr(pipe));
  ::unlink(pipe.c_str());
  EXPECT_THAT(KeepTerminationMessage("/dev/null", "why"), HasSubstr("it is no plain file"));
}

}  // namespace
}  // namespace hlaunch
