// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/flight_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

std::vector<int64_t> Numbers(const GroupSnapshot& group) {
  std::vector<int64_t> numbers;
  for (const CollectiveCall& call : group.latest) numbers.push_back(call.sequence);
  return numbers;
}

TEST(ParseFlightRecord, KnowsTheLastCollectivesOfEachGroup) {
  const auto record =
      ParseFlightRecord(Record({Entry("0", 1, true), Entry("0", 2, true), Entry("1", 1, false)}));
  ASSERT_TRUE(record);
  ASSERT_EQ(record->groups.size(), 2u);
  const GroupSnapshot& all = record->groups[0];
  EXPECT_EQ(all.name, "0");
  EXPECT_EQ(all.description, "dp");
  EXPECT_THAT(all.members, IsEmpty());
  ASSERT_EQ(all.latest.size(), 2u);
  EXPECT_EQ(all.latest[1].sequence, 2);
  EXPECT_EQ(all.latest[1].op, "all_reduce");
  EXPECT_EQ(all.latest[1].sizes, "[4, 2] float32, 32 B");
  EXPECT_FALSE(all.latest[1].inside);
  const GroupSnapshot& one = record->groups[1];
  EXPECT_THAT(one.members, ElementsAre(0, 3));
  EXPECT_TRUE(one.latest[0].inside);
  EXPECT_FALSE(record->in_p2p);
}

TEST(ParseFlightRecord, KeepsTheFirstThatIsNotOverHoweverManyFollow) {
  std::vector<std::string> entries;
  for (int i = 1; i <= 20; ++i) entries.push_back(Entry("0", i, i < 5));
  const auto record = ParseFlightRecord(Record(entries));
  ASSERT_TRUE(record);
  EXPECT_THAT(Numbers(record->groups[0]), ElementsAre(4, 5, 19, 20));
}

TEST(ParseFlightRecord, TakesAGroupThatIsNoListForNone) {
  for (const char* group : {R"("0")", "{\"0\":1}", "[]", "7"}) {
    const auto record = ParseFlightRecord(
        Record({absl::StrCat(R"({"collective_seq_id":1,"process_group":)", group,
                             R"(,"profiling_name":"nccl:all_reduce","state":"completed"})"),
                Entry("0", 1, false)}));
    ASSERT_TRUE(record) << group;
    EXPECT_TRUE(std::any_of(record->groups.begin(), record->groups.end(),
                            [](const GroupSnapshot& one) { return one.name == "0"; }))
        << group;
  }
}

TEST(ParseGroups, KeepsNotMoreThanARankMayHave) {
  std::vector<std::string> groups;
  for (size_t i = 0; i < kMaxGroupsOfRank + 5; ++i) {
    groups.push_back(absl::StrCat("\"", i, R"(":{"ranks":[0,1],"desc":"dp"})"));
  }
  EXPECT_THAT(ParseGroups(absl::StrCat("{", absl::StrJoin(groups, ","), "}")),
              SizeIs(kMaxGroupsOfRank));
}

TEST(ParseFlightRecord, OrdersARecorderThatHasWrapped) {
  const auto record = ParseFlightRecord(Record(
      {Entry("0", 8, true), Entry("0", 9, false), Entry("0", 6, true), Entry("0", 7, true)}));
  ASSERT_TRUE(record);
  EXPECT_THAT(Numbers(record->groups[0]), ElementsAre(6, 7, 8, 9));
}

// An entry as torch 2.5 to 2.14 write it with NCCL, without fields that are not read.
std::string NcclEntry(absl::string_view name, absl::string_view state, bool retired, int collective,
                      int p2p = 0) {
  return absl::StrCat(
      R"({"collective_seq_id":)", collective, R"(,"p2p_seq_id":)", p2p,
      R"(,"input_dtypes":["Float"],"input_sizes":[[4]],"is_p2p":)", p2p > 0 ? "true" : "false",
      R"(,"process_group":["0","default_pg"],"profiling_name":"nccl:)", name, R"(","retired":)",
      retired ? "true" : "false", R"(,"state":")", state, R"("})");
}

TEST(ParseFlightRecord, TellsWhatADeviceDoesLater) {
  const auto record = ParseFlightRecord(Record({NcclEntry("all_reduce", "completed", true, 1),
                                                NcclEntry("all_reduce", "started", false, 2),
                                                NcclEntry("all_reduce", "scheduled", false, 3)}));
  ASSERT_TRUE(record);
  const GroupSnapshot& group = record->groups.at(0);
  EXPECT_EQ(group.backend, "nccl");
  EXPECT_EQ(group.latest.at(0).op, "all_reduce");
  EXPECT_FALSE(group.latest.at(0).inside);
  EXPECT_TRUE(group.latest.at(1).inside);
  EXPECT_TRUE(group.latest.at(2).inside);
}

TEST(ParseFlightRecord, KeepsTheNumbersOfTwoBackendsOfAGroupApart) {
  const auto record =
      ParseFlightRecord(Record({Entry("0", 7, true), NcclEntry("barrier", "scheduled", false, 1)}));
  ASSERT_TRUE(record);
  ASSERT_EQ(record->groups.size(), 2u);
  EXPECT_EQ(record->groups[0].backend, "");
  EXPECT_THAT(Numbers(record->groups[0]), ElementsAre(7));
  EXPECT_EQ(record->groups[1].backend, "nccl");
  EXPECT_THAT(Numbers(record->groups[1]), ElementsAre(1));
}

TEST(ParseFlightRecord, TakesTheStateOfABlockForThatOfItsCalls) {
  // Torch never says of the calls of a block that they are over.
  const std::vector<std::string> exchange = {NcclEntry("send 0->1", "scheduled", false, 0, 1),
                                             NcclEntry("recv 0<-1", "scheduled", false, 0, 1)};
  for (const bool over : {true, false}) {
    std::vector<std::string> entries = exchange;
    entries.push_back(NcclEntry("coalesced", over ? "completed" : "scheduled", over, 0, 1));
    EXPECT_EQ(ParseFlightRecord(Record(entries))->device_in_p2p, !over);
  }
  EXPECT_TRUE(ParseFlightRecord(Record(exchange))->device_in_p2p);
  EXPECT_FALSE(ParseFlightRecord(Record(exchange))->in_p2p);
  const auto gathered = ParseFlightRecord(Record({NcclEntry("all_gather", "scheduled", false, 4),
                                                  NcclEntry("coalesced", "completed", true, 4)}));
  EXPECT_FALSE(IsInside(gathered->groups.at(0)));
}

TEST(ParseFlightRecord, TakesABlockWithoutAnEntryForOverOnceMoreIsCalled) {
  // Torch before 2.7 has no entry for a block of collectives.
  std::vector<std::string> entries = {NcclEntry("all_gather", "scheduled", false, 4),
                                      NcclEntry("all_gather", "scheduled", false, 4)};
  EXPECT_TRUE(IsInside(ParseFlightRecord(Record(entries))->groups.at(0)));
  entries.push_back(NcclEntry("all_reduce", "completed", true, 5));
  EXPECT_FALSE(IsInside(ParseFlightRecord(Record(entries))->groups.at(0)));
}

TEST(ParseFlightRecord, KnowsWithWhomMessagesAreNotOver) {
  const auto record = ParseFlightRecord(
      Record({NcclEntry("recv 0<-1", "completed", true, 0, 1),
              NcclEntry("send 0->1", "scheduled", false, 0, 2),
              NcclEntry("recv 0<-1", "scheduled", false, 0, 3),
              NcclEntry("recv 0<--1", "scheduled", false, 0, 4),  // From any rank.
              NcclEntry("sent 0->1", "scheduled", false, 0, 5)}));
  ASSERT_TRUE(record);
  ASSERT_THAT(record->groups, SizeIs(1));
  const GroupSnapshot& group = record->groups[0];
  EXPECT_THAT(group.latest, IsEmpty());
  EXPECT_EQ(group.messages, 5);
  ASSERT_THAT(group.peers, SizeIs(2));
  EXPECT_EQ(group.peers[0].peer, 1);
  EXPECT_FALSE(group.peers[0].sends);
  EXPECT_EQ(group.peers[0].calls, 2);
  EXPECT_EQ(group.peers[0].unfinished, 1);
  EXPECT_TRUE(group.peers[1].sends);
  EXPECT_EQ(group.peers[1].unfinished, 1);
  EXPECT_TRUE(record->device_in_p2p);
}

TEST(ParseFlightRecord, DoesNotCountTheMessagesOfARecorderThatHasWrapped) {
  std::string entry = NcclEntry("recv 0<-1", "scheduled", false, 0, 9);
  entry.insert(1, R"("record_id":2009,)");
  EXPECT_EQ(ParseFlightRecord(Record({entry}))->groups.at(0).peers.at(0).calls, -1);
}

TEST(ParseFlightRecord, KeepsOfTooManyPeersThoseWhoseMessagesAreNotOver) {
  std::vector<std::string> entries;
  for (int peer = 1; peer <= 70; ++peer) {
    entries.push_back(NcclEntry(absl::StrCat("send 0->", peer), "scheduled", peer > 3, 0, peer));
  }
  EXPECT_THAT(ParseFlightRecord(Record(entries))->groups.at(0).peers, SizeIs(3));
  entries.clear();
  for (int peer = 1; peer <= 65; ++peer) {
    entries.push_back(NcclEntry(absl::StrCat("send 0->", peer), "scheduled", false, 0, peer));
  }
  EXPECT_THAT(ParseFlightRecord(Record(entries))->groups.at(0).peers, IsEmpty());
  entries.pop_back();
  EXPECT_THAT(ParseFlightRecord(Record(entries))->groups.at(0).peers, SizeIs(64));
}

TEST(ParseFlightRecord, ForgetsAGroupThatWasDestroyedAndMadeAgain) {
  std::vector<std::string> entries;
  for (int i = 1; i <= 9; ++i) entries.push_back(NcclEntry("all_reduce", "completed", true, i));
  entries.push_back(NcclEntry("broadcast", "completed", true, 1));
  entries.push_back(NcclEntry("all_reduce", "scheduled", false, 2));
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].insert(1, absl::StrCat(R"("record_id":)", i, ","));
  }
  const auto record = ParseFlightRecord(Record(entries));
  EXPECT_THAT(Numbers(record->groups.at(0)), ElementsAre(1, 2));
  EXPECT_EQ(record->groups[0].latest[0].op, "broadcast");
}

TEST(RecorderQuestions, AskEachRecorderThatIsThere) {
  EXPECT_THAT(RecorderQuestions(R"(["ping","fr_trace_json","dump_nccl_trace_pickle"])"),
              ElementsAre("fr_trace_json"));
  EXPECT_THAT(RecorderQuestions(R"(["dump_nccl_trace_json","fr_trace_json","dump_traceback"])"),
              ElementsAre("dump_nccl_trace_json", "fr_trace_json"));
  EXPECT_THAT(RecorderQuestions(R"(["c10d_health_check","dump_xccl_trace_json","fr_trace_json"])"),
              ElementsAre("dump_xccl_trace_json", "fr_trace_json", "fr_trace_json?backend=nccl2",
                          "fr_trace_json?backend=nccl-lazy"));
  EXPECT_THAT(RecorderQuestions("[]"), IsEmpty());
  EXPECT_THAT(RecorderQuestions("nonsense"), ElementsAre("fr_trace_json"));
  std::vector<std::string> many(100, R"("dump_x_trace_json")");
  EXPECT_EQ(RecorderQuestions(absl::StrCat("[", absl::StrJoin(many, ","), "]")).size(), 8u);
  EXPECT_THAT(RecorderQuestions(R"(["dump_a b\r\n_trace_json","dump_/../_trace_json"])"),
              IsEmpty());
}

TEST(BriefQuestion, LeavesOutTheCallsWhereTheServerCan) {
  EXPECT_EQ(BriefQuestion("dump_nccl_trace_json", "[]"),
            "dump_nccl_trace_json?includecollectives=false");
  EXPECT_EQ(BriefQuestion("fr_trace_json?backend=nccl2", "[]"),
            "fr_trace_json?backend=nccl2&includecollectives=false");
  // Gloo's recorder has no such question.
  EXPECT_EQ(BriefQuestion("fr_trace_json", R"(["fr_trace_json","hlaunch_progress"])"),
            kProgressHandler);
  EXPECT_EQ(BriefQuestion("fr_trace_json", R"(["fr_trace_json"])"), "");
  EXPECT_EQ(BriefQuestion("fr_trace_json", "no list"), "");
  EXPECT_EQ(BriefQuestion("torchcomms_fr_trace_json", R"(["hlaunch_progress"])"), "");
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

TEST(ParseGroups, KnowsTheMembersAndTheDescriptionOfEach) {
  const auto groups = ParseGroups(R"({"0": {"ranks": [0, 1], "desc": "dp"}, "1": {"ranks": [1]}})");
  EXPECT_THAT(groups.at("0").members, ElementsAre(0, 1));
  EXPECT_EQ(groups.at("0").description, "dp");
  EXPECT_THAT(groups.at("1").members, ElementsAre(1));
  EXPECT_EQ(groups.at("1").description, "");
  EXPECT_THAT(ParseGroups("[1]"), IsEmpty());
}

TEST(WaitsForStore, IsSoWhileACallIsUnderWay) {
  EXPECT_TRUE(WaitsForStore(R"({"pytorch.wait_counter.TCPStore__wait":{"active_count":1}})"));
  EXPECT_FALSE(WaitsForStore(R"({"pytorch.wait_counter.TCPStore__wait":{"active_count":0}})"));
  EXPECT_FALSE(WaitsForStore(R"({"pytorch.wait_counter.other":{"active_count":1}})"));
  EXPECT_FALSE(WaitsForStore("nonsense"));
}

RecordedCalls Calls(const std::string& group, uint64_t begun, uint64_t over) {
  RecordedCalls calls{group, begun, over, false, {}};
  for (uint64_t number = 1; number <= begun; ++number) {
    calls.latest.push_back({number, "all_reduce", 1024, "float32", 4, number <= over});
  }
  return calls;
}

TEST(OwnCallsOf, ShowsAGroupOfTorchUnderTorchsName) {
  const OwnCalls own = OwnCallsOf({Calls("torch/0/5f70bf18a0860070.0", 4, 3)});
  ASSERT_THAT(own.groups, SizeIs(1));
  const GroupSnapshot& group = own.groups[0];
  EXPECT_EQ(TorchName(group.name), "0");
  EXPECT_NE(group.name, "0");  // Torch's own recorder may have a group of that name.
  EXPECT_EQ(group.description, "default_pg");
  ASSERT_THAT(group.latest, SizeIs(4));
  EXPECT_EQ(group.latest[3].sequence, 4);
  EXPECT_EQ(group.latest[3].op, "all_reduce");
  EXPECT_EQ(group.latest[3].sizes, "[1024] float32, 4 KiB");
  EXPECT_TRUE(group.latest[3].inside);
  EXPECT_FALSE(group.latest[2].inside);
  EXPECT_EQ(own.calls, 4);
  EXPECT_FALSE(own.in_p2p);
}

TEST(OwnCallsOf, KeepsTheFirstThatIsNotOverHoweverManyFollow) {
  const OwnCalls own = OwnCallsOf({Calls("torch/1/a.0", 20, 4)});
  const GroupSnapshot& group = own.groups[0];
  EXPECT_THAT(Numbers(group), ElementsAre(4, 5, 19, 20));
}

TEST(OwnCallsOf, TakesTheLaterOfTwoGroupsOfOneName) {
  const OwnCalls own = OwnCallsOf({Calls("torch/0/a.0", 9, 9), Calls("torch/0/a.1", 2, 1)});
  ASSERT_THAT(own.groups, SizeIs(1));
  EXPECT_EQ(own.groups[0].latest.back().sequence, 2);
}

TEST(OwnCallsOf, ProgressChangesWithEveryCallAndItsEnd) {
  const std::string before = OwnCallsOf({Calls("torch/0/a.0", 4, 3)}).progress;
  EXPECT_EQ(OwnCallsOf({Calls("torch/0/a.0", 4, 3)}).progress, before);
  EXPECT_NE(OwnCallsOf({Calls("torch/0/a.0", 4, 4)}).progress, before);
  EXPECT_NE(OwnCallsOf({Calls("torch/0/a.0", 5, 3)}).progress, before);
}

TEST(OwnCallsOf, KnowsThatARankWaitsForASingleOther) {
  RecordedCalls record = Calls("torch/0/a.0", 0, 0);
  record.awaits_message = true;
  const OwnCalls own = OwnCallsOf({record});
  EXPECT_TRUE(own.in_p2p);
  EXPECT_THAT(own.groups[0].latest, IsEmpty());
}

TEST(OwnCallsOf, KnowsForWhomARankWaits) {
  RecordedCalls record = Calls("torch/0/a.0", 2, 2);
  record.peers = {{1, false, 5, 3, true}, {1, true, 4, 2, false}};
  const OwnCalls own = OwnCallsOf({record});
  const GroupSnapshot& group = own.groups[0];
  ASSERT_THAT(group.peers, SizeIs(2));
  EXPECT_EQ(group.peers[0].peer, 1);
  EXPECT_FALSE(group.peers[0].sends);
  EXPECT_EQ(group.peers[0].calls, 5);
  EXPECT_EQ(group.peers[0].unfinished, 2);
  EXPECT_EQ(group.peers[1].unfinished, 0);  // Nobody waits for it: it may be over.
  EXPECT_EQ(group.messages, 9);
  EXPECT_EQ(own.calls, 11);
  record.peers[1].called = 5;
  EXPECT_NE(OwnCallsOf({record}).progress, own.progress);
}

TEST(TorchName, LeavesTheNamesOfOtherRecordersAsTheyAre) { EXPECT_EQ(TorchName("1"), "1"); }

}  // namespace
}  // namespace hlaunch
