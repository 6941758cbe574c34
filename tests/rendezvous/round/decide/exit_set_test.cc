// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/exit_set.h"

#include <csignal>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

FailureTraits Code(int exit_code) { return {.exit_code = exit_code}; }
FailureTraits Signal(int signal) { return {.exit_code = 128 + signal, .signal = signal}; }

TEST(ExitSet, KnowsCodesRangesSignalsAndKinds) {
  const FailureTraits oom = {.exit_code = 137, .signal = SIGKILL, .oom = true};
  const FailureTraits hang = {.exit_code = 137, .signal = SIGKILL, .hang = true};
  const FailureTraits node = {.exit_code = 199, .node = true};
  struct Case {
    std::string set;
    FailureTraits failure;
    std::string word;  // The word that puts it in the set; empty if it is not in the set.
  };
  const Case cases[] = {
      {"", Code(1), ""},
      {"1", Code(1), "exit code 1"},
      {"1", Code(2), ""},
      {" 1 , 64-78 ", Code(64), "exit code 64"},
      {"1,64-78", Code(78), "exit code 78"},
      {"1,64-78", Code(79), ""},
      {"255", Code(255), "exit code 255"},
      {"SIGKILL", Signal(SIGKILL), "SIGKILL"},
      {"KILL", Signal(SIGKILL), "SIGKILL"},
      {"SIGKILL", Code(137), "exit code 137"},
      {"137", Signal(SIGKILL), "SIGKILL"},
      {"163", Signal(35), "signal 35"},
      {"SIGKILL", Signal(SIGTERM), ""},
      {"oom", oom, "oom"},
      {"oom", Signal(SIGKILL), ""},
      {"SIGKILL", oom, "SIGKILL"},
      {"SIGKILL,oom", oom, "oom"},
      {"hang", hang, "hang"},
      {"hang", oom, ""},
      {"node", node, "node"},
      {"199", node, "exit code 199"},
      {"node", Code(199), ""},
      {"any", Code(5), "exit code 5"},
      {"any", Signal(SIGSEGV), "SIGSEGV"},
      {"any", node, "node"},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<ExitSet> set = ExitSet::Parse(c.set);
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_EQ(set->WordOf(c.failure), c.word) << c.set;
    EXPECT_EQ(set->empty(), c.set.empty());
  }
}

TEST(ExitSet, NamesTheWordThatIsNone) {
  for (const std::string word : {"0", "256", "-1", "78-64", "1-", "-", "1-2-3", "SIGNONE", "OOM",
                                 "sigkill", "1 2", "0x1", "+1", "999999999999"}) {
    const absl::Status status = ExitSet::Parse("1," + word).status();
    EXPECT_THAT(std::string(status.message()), StartsWith("'" + word + "' names no failure"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("ranges such as 64-78"));
  }
  EXPECT_THAT(std::string(ExitSet::Parse("1,,2").status().message()), StartsWith("'' names"));
  EXPECT_THAT(std::string(ExitSet::Parse("a\nb").status().message()), StartsWith("'a\\nb' names"));
}

TEST(ExitSet, CoversAnotherOneWhollyOrNot) {
  const auto covers = [](const char* one, const char* other) {
    return ExitSet::Parse(one)->Covers(*ExitSet::Parse(other));
  };
  EXPECT_TRUE(covers("any", "75,node"));
  EXPECT_TRUE(covers("64-78,oom", "75"));
  EXPECT_TRUE(covers("SIGKILL", "137"));
  EXPECT_FALSE(covers("64-78", "79"));
  EXPECT_FALSE(covers("64-78", "75,node"));
  EXPECT_FALSE(covers("oom,hang,node,1-255", "any"));
}

}  // namespace
}  // namespace hlaunch
