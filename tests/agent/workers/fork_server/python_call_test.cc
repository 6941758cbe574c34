// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/python_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using Kind = PythonCall::Kind;

TEST(ReadPythonCall, FindsTheScriptBehindPythonsOptions) {
  const PythonCall call =
      ReadPythonCall({"/usr/bin/python3.11", "-uB", "-W", "error", "-Xdev", "train.py", "-m", "x"});
  EXPECT_EQ(call.why_not, "");
  EXPECT_EQ(call.kind, Kind::kScript);
  EXPECT_EQ(call.what, "train.py");
}

TEST(ReadPythonCall, FindsAModuleAndCode) {
  EXPECT_EQ(ReadPythonCall({"python", "-u", "-m", "a.b", "c"}).what, "a.b");
  EXPECT_EQ(ReadPythonCall({"python", "-ma.b"}).what, "a.b");
  EXPECT_EQ(ReadPythonCall({"python", "-m", "a"}).kind, Kind::kModule);
  EXPECT_EQ(ReadPythonCall({"python", "-c", "1"}).kind, Kind::kCode);
}

TEST(ReadPythonCall, SaysWhyAForkCannotStandForACommand) {
  const auto why = [](std::vector<std::string> argv) { return ReadPythonCall(argv).why_not; };
  EXPECT_THAT(why({"numactl", "python", "x.py"}), HasSubstr("not Python itself"));
  EXPECT_THAT(why({"./pythonic", "x.py"}), HasSubstr("not Python itself"));
  EXPECT_THAT(why({"python", "-I", "x.py"}), HasSubstr("-I"));
  EXPECT_THAT(why({"python", "-uE", "x.py"}), HasSubstr("-uE"));
  EXPECT_THAT(why({"python", "-X", "importtime", "x.py"}), HasSubstr("-X importtime"));
  EXPECT_THAT(why({"python", "-"}), HasSubstr("standard input"));
  EXPECT_THAT(why({"python", "-u"}), HasSubstr("no script"));
}

}  // namespace
}  // namespace hlaunch
