// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/values/option_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ParseStreamChoice, TakesOneNumberForAllLocalRanks) {
  EXPECT_EQ(ParseStreamChoice("0")->Of(7), Streams::kNone);
  EXPECT_EQ(ParseStreamChoice("1")->Of(7), Streams::kOut);
  EXPECT_EQ(ParseStreamChoice("2")->Of(0), Streams::kErr);
  EXPECT_EQ(ParseStreamChoice("3")->Of(0), Streams::kBoth);
}

TEST(ParseStreamChoice, TakesLocalRanksOfSeveralDigits) {
  const auto choice = ParseStreamChoice("0:1,12:3,101:2");
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->Of(0), Streams::kOut);
  EXPECT_EQ(choice->Of(1), Streams::kNone);
  EXPECT_EQ(choice->Of(12), Streams::kBoth);
  EXPECT_EQ(choice->Of(101), Streams::kErr);
}

TEST(ParseStreamChoice, RefusesWhatIsNone) {
  for (const char* text : {"", "4", "-1", "out", "0:", ":1", "0:4", "0:1,", ",", "a:1", "0:1:2",
                           "0=1", "3,0:1", "4096:1", "99999999999:1", " 3"}) {
    EXPECT_THAT(std::string(ParseStreamChoice(text).status().message()),
                HasSubstr("such as 0:1,12:3"))
        << text;
  }
  EXPECT_EQ(ParseStreamChoice("2:1,2:3").status().message(), "names local rank 2 twice");
}

TEST(ParseLocalRanks, ReadsNumbers) {
  EXPECT_THAT(*ParseLocalRanks("2,0, 11"), ElementsAre(0, 2, 11));
  EXPECT_THAT(*ParseLocalRanks(""), IsEmpty());
  for (const char* text : {"a", "-1", "0-3", "0;1", "4096"}) {
    EXPECT_FALSE(ParseLocalRanks(text).ok()) << text;
  }
}

TEST(ParseFilters, TakesTwoCommasForOneOfTheText) {
  EXPECT_THAT(ParseFilters("apple,orange"), ElementsAre("apple", "orange"));
  EXPECT_THAT(ParseFilters("a,,b,c"), ElementsAre("a,b", "c"));
  EXPECT_THAT(ParseFilters("a,,,b"), ElementsAre("a,", "b"));
  EXPECT_THAT(ParseFilters(",,"), ElementsAre(","));
  EXPECT_THAT(ParseFilters("loss = "), ElementsAre("loss = "));
}

TEST(ParseFilters, DropsEmptyTexts) {
  EXPECT_THAT(ParseFilters(""), IsEmpty());
  EXPECT_THAT(ParseFilters(","), IsEmpty());
  EXPECT_THAT(ParseFilters("a,"), ElementsAre("a"));
}

TEST(ParseLineRule, ReadsWhatIsToBeDoneAndThePattern) {
  EXPECT_EQ(ParseLineRule("fail:loss=(nan|inf)")->action, LineAction::kFail);
  EXPECT_EQ(ParseLineRule("fail:loss=(nan|inf)")->pattern, "loss=(nan|inf)");
  EXPECT_EQ(ParseLineRule("warn:fail:")->pattern, "fail:");
  EXPECT_EQ(ParseLineRule("Xid")->action, LineAction::kWarn);
  EXPECT_EQ(ParseLineRule("metric:(?P<a>1)")->action, LineAction::kMetric);
}

TEST(ParseLineRule, RefusesWhatIsNone) {
  EXPECT_EQ(ParseLineRule("fail:(").status().message(), "is no pattern of RE2: missing ): (");
  EXPECT_THAT(std::string(ParseLineRule("").status().message()), HasSubstr("expected a pattern"));
  EXPECT_THAT(std::string(ParseLineRule("metric:loss").status().message()),
              HasSubstr("a group with a name"));
}

TEST(ParseSilenceRule, ReadsTimeAndPattern) {
  EXPECT_EQ(ParseSilenceRule("5m:a:b")->limit, std::chrono::minutes(5));
  EXPECT_EQ(ParseSilenceRule("5m:a:b")->pattern, "a:b");
  for (const char* text : {"", "step", "0:step", "x:step", "5m:", "5m:("}) {
    EXPECT_FALSE(ParseSilenceRule(text).ok()) << text;
  }
}

TEST(ParseRotation, ReadsSizeAndCount) {
  EXPECT_EQ(ParseRotation("100M:5")->bytes, 100u << 20);
  EXPECT_EQ(ParseRotation("100M:5")->keep, 5);
  EXPECT_EQ(ParseRotation("4096")->bytes, 4096u);
  EXPECT_EQ(ParseRotation("4096")->keep, 1);
  EXPECT_EQ(ParseRotation("500K:0")->bytes, 500u << 10);
  EXPECT_EQ(ParseRotation("500K:0")->keep, 0);
  EXPECT_EQ(ParseRotation("2G")->bytes, size_t{2} << 30);
}

TEST(ParseRotation, RefusesWhatIsNone) {
  for (const char* text : {"", "M", "1", "3K", "-1M", "1.5M", "10m", "10MB", "10M:", "10M:x",
                           "10M:1001", "9999999999G", "99999999999999999999", "10M:1:2"}) {
    EXPECT_THAT(std::string(ParseRotation(text).status().message()),
                HasSubstr("such as 100M or 100M:5"))
        << text;
  }
}

TEST(ParseSignals, ReadsNames) {
  EXPECT_THAT(*ParseSignals("SIGTERM,SIGINT, USR1,SIGTERM"), ElementsAre(SIGTERM, SIGINT, SIGUSR1));
}

TEST(ParseSignals, SaysWhichNameIsNone) {
  EXPECT_EQ(ParseSignals("SIGTERM,SIGFOO").status().message(),
            "no signal is named 'SIGFOO'; expected such as SIGTERM,SIGINT,SIGUSR1");
  for (const char* text : {"", "15", "SIG", "sigterm", "SIGTERM,", "SIGRTMIN"}) {
    EXPECT_FALSE(ParseSignals(text).ok()) << text;
  }
}

TEST(ParseSignals, RefusesThoseThatCannotBePassedOn) {
  EXPECT_EQ(ParseSignals("SIGKILL").status().message(),
            "SIGKILL cannot be passed on: no process can handle it");
  EXPECT_EQ(ParseSignals("SIGTERM,STOP").status().message(),
            "STOP cannot be passed on: no process can handle it");
  EXPECT_EQ(ParseSignals("SIGCHLD").status().message(),
            "SIGCHLD cannot be passed on: it tells hlaunch of its own processes");
  EXPECT_EQ(ParseSignals("SIGSEGV").status().message(),
            "SIGSEGV cannot be passed on: it tells of a fault of the process that gets it");
}

TEST(ParseSet, ReadsKnownWords) {
  EXPECT_THAT(*ParseSet("b,a,b", {"a", "b", "c"}), ElementsAre("a", "b"));
  EXPECT_EQ(ParseSet("a,d", {"a", "b"}).status().message(), "'d' is unknown; known are a, b");
  EXPECT_EQ(ParseSet(",", {"a", "b"}).status().message(), "expected one or more of a, b");
}

}  // namespace
}  // namespace hlaunch
