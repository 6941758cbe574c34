// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/flight_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An entry as torch 2.13 writes it with gloo, without fields that are not read.
std::string Entry(absl::string_view group, int sequence, bool retired, bool p2p = false) {
  return absl::StrCat(R"({"collective_seq_id":)", sequence,
                      R"(,"input_dtypes":["Float"],"input_sizes":[[4,2]],"is_p2p":)",
                      p2p ? "true" : "false", R"(,"process_group":[")", group,
                      R"(","dp"],"profiling_name":"gloo:all_reduce","retired":)",
                      retired ? "true" : "false", R"(,"state":"scheduled"})");
}

std::string Record(const std::vector<std::string>& entries) {
  return absl::StrCat(
      R"({"entries":[)", absl::StrJoin(entries, ","),
      R"(],"pg_config":{"":{"desc":"","name":"","ranks":"[]"},"1":{"name":"1","ranks":"[0, 3]"}},)",
      R"("pg_status":{"1":{"last_enqueued_collective":")", entries.size(),
      R"("}},"version":"2.10"})");
}

TEST(ParseFlightRecord, KnowsTheLastCollectivesOfEachGroup) {
  const auto record =
      ParseFlightRecord(Record({Entry("0", 1, true), Entry("0", 2, true), Entry("1", 1, false)}));
  ASSERT_TRUE(record);
  ASSERT_EQ(record->groups.size(), 2u);
  const GroupPicture& all = record->groups[0];
  EXPECT_EQ(all.name, "0");
  EXPECT_EQ(all.description, "dp");
  EXPECT_THAT(all.members, IsEmpty());
  ASSERT_EQ(all.latest.size(), 2u);
  EXPECT_EQ(all.latest[1].sequence, 2);
  EXPECT_EQ(all.latest[1].op, "all_reduce");
  EXPECT_EQ(all.latest[1].sizes, "[4, 2] float32, 32 B");
  EXPECT_FALSE(all.latest[1].inside);
  const GroupPicture& one = record->groups[1];
  EXPECT_THAT(one.members, ElementsAre(0, 3));
  EXPECT_TRUE(one.latest[0].inside);
  EXPECT_FALSE(record->in_p2p);
}

TEST(ParseFlightRecord, KeepsTheFirstThatIsNotOverHoweverManyFollow) {
  std::vector<std::string> entries;
  for (int i = 1; i <= 20; ++i) entries.push_back(Entry("0", i, i < 5));
  const auto record = ParseFlightRecord(Record(entries));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->groups[0].latest.size(), 4u);
  EXPECT_EQ(record->groups[0].latest.front().sequence, 5);
  EXPECT_EQ(record->groups[0].latest.back().sequence, 20);
}

TEST(ParseFlightRecord, OrdersARecorderThatHasWrapped) {
  const auto record = ParseFlightRecord(Record(
      {Entry("0", 8, true), Entry("0", 9, false), Entry("0", 6, true), Entry("0", 7, true)}));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->groups[0].latest.front().sequence, 6);
  EXPECT_EQ(record->groups[0].latest.back().sequence, 9);
}

TEST(ParseFlightRecord, TellsCallsToSingleRanksApart) {
  const auto record = ParseFlightRecord(Record({Entry("0", 0, false, true)}));
  ASSERT_TRUE(record);
  EXPECT_THAT(record->groups, IsEmpty());
  EXPECT_TRUE(record->in_p2p);
  EXPECT_EQ(ParseFlightRecord(R"({"version":"2.10","entries":[{"record_id":6}]})")->calls, 6);
}

TEST(ParseFlightRecord, IsUnsetForAnythingElse) {
  for (const char* text : {"", "{", "[]", "{}", "null", R"({"entries":[]})"}) {
    EXPECT_FALSE(ParseFlightRecord(text)) << text;
  }
  EXPECT_FALSE(ParseFlightRecord(std::string(1 << 20, '[')));  // The stack does not overflow.
}

TEST(FlightProgress, ChangesWithEachCollective) {
  const std::string one = Record({Entry("0", 1, true)});
  const std::string two = Record({Entry("0", 1, true), Entry("0", 2, true)});
  EXPECT_EQ(FlightProgress(one), FlightProgress(std::string(one)));
  EXPECT_NE(FlightProgress(one), FlightProgress(two));
}

TEST(ParseGroups, KnowsTheMembersOfEach) {
  const auto groups = ParseGroups(R"({"0": [0, 1], "1": [1]})");
  EXPECT_THAT(groups.at("0"), ElementsAre(0, 1));
  EXPECT_THAT(groups.at("1"), ElementsAre(1));
  EXPECT_THAT(ParseGroups("[1]"), IsEmpty());
}

TEST(WaitsForStore, IsSoWhileACallIsUnderWay) {
  EXPECT_TRUE(WaitsForStore(R"({"pytorch.wait_counter.TCPStore__wait":{"active_count":1}})"));
  EXPECT_FALSE(WaitsForStore(R"({"pytorch.wait_counter.TCPStore__wait":{"active_count":0}})"));
  EXPECT_FALSE(WaitsForStore(R"({"pytorch.wait_counter.other":{"active_count":1}})"));
  EXPECT_FALSE(WaitsForStore("nonsense"));
}

}  // namespace
}  // namespace hlaunch
