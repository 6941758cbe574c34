// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/pmix_words.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

PmixPlan Plan() {
  return {.library = "/usr/lib/libpmix.so.2",
          .name_space = "hl-1-r1",
          .directory = "/tmp/a b",
          .host = "node0",
          .first_rank = 8,
          .nproc = 4,
          .node_rank = 2,
          .num_nodes = 3,
          .store_host = "10.0.0.1",
          .store_port = 29500,
          .programs = "2 1",
          .oversubscribed = true,
          .optional = true,
          .any_user = true};
}

TEST(ParsePmixArguments, ReadsWhatPmixArgumentsWrites) {
  const auto plan = ParsePmixArguments(PmixArguments(Plan()));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PmixArguments(*plan), PmixArguments(Plan()));
  EXPECT_EQ(plan->directory, "/tmp/a b");
  EXPECT_EQ(plan->store_port, 29500);
  EXPECT_TRUE(plan->oversubscribed && plan->optional);
  EXPECT_TRUE(plan->any_user);
}

TEST(ParsePmixArguments, RefusesWhatNobodyButAPersonWrites) {
  EXPECT_FALSE(ParsePmixArguments({}).ok());
  EXPECT_FALSE(ParsePmixArguments({"--help"}).ok());
  EXPECT_FALSE(ParsePmixArguments({"--nproc"}).ok());
  std::vector<std::string> words = PmixArguments(Plan());
  words.insert(words.end(), {"--store-port", "65536"});
  EXPECT_FALSE(ParsePmixArguments(words).ok());
  words.back() = "-1";
  EXPECT_FALSE(ParsePmixArguments(words).ok());
}

TEST(PmixNewsIn, ReadsWhatToLineWrites) {
  const PmixNews news{PmixNews::Kind::kAbort, 3, 7, "a \"b\"\n\xff", {}};
  const auto read = PmixNewsIn(ToLine(news));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->kind, news.kind);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->code, 7);
  EXPECT_EQ(ToLine(news).find('\n'), std::string::npos);
  const auto environment = PmixNewsIn(ToLine({PmixNews::Kind::kEnvironment, 1, 0, "", {"A=b"}}));
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->environment, std::vector<std::string>{"A=b"});
}

TEST(PmixNewsIn, ReadsWhatIsToBeSpawned) {
  PmixNews news{PmixNews::Kind::kSpawn, 1};
  news.world = 2;
  news.spawn = {{{2, {"solver", "a b"}, {"X=1"}, "/tmp"}}, {"node1"}, {}, 3, {{"P=0"}, {"P=1"}}};
  const auto read = PmixNewsIn(ToLine(news));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToLine(*read), ToLine(news));
  EXPECT_EQ(read->world, 2);
  EXPECT_EQ(RanksOf(read->spawn), 2);
  EXPECT_EQ(read->spawn.pmix_world, 3);
  EXPECT_EQ(read->spawn.programs[0].argv[1], "a b");
}

TEST(PmixNewsIn, RefusesAllElse) {
  for (const char* line :
       {"", "x", "[]", "{}", R"({"kind":"no"})", R"({"kind":1})", R"({"kind":"abort","rank":"x"})",
        R"({"kind":"environment","environment":[1]})"}) {
    EXPECT_FALSE(PmixNewsIn(line).ok()) << line;
  }
}

}  // namespace
}  // namespace hlaunch
