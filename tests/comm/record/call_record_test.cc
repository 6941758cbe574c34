// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/record/call_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "comm/record/recorded_calls.h"

namespace hlaunch {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMost = 100;
constexpr Rank kAny = -1;  // kAnyRank

// Reads it as another process does.
std::optional<RecordedCalls> Read(const std::string& group) {
  for (const RecordedCalls& calls : ReadCallRecords(::getpid(), kMost)) {
    if (calls.group == group) return calls;
  }
  return std::nullopt;
}

TEST(CallRecord, TellsWhatWasCalledAndWhatIsOver) {
  const auto record = CallRecord::Open("torch/0/abc.0");
  ASSERT_NE(record, nullptr);
  record->Begin(1, Verb::kBarrier, DataType::kByte, 0);
  record->End(1);
  record->Begin(2, Verb::kAllReduce, DataType::kFloat32, 4);
  const auto calls = Read("torch/0/abc.0");
  ASSERT_TRUE(calls);
  EXPECT_EQ(calls->begun, 2u);
  EXPECT_EQ(calls->over, 1u);
  ASSERT_THAT(calls->latest, SizeIs(2));
  EXPECT_EQ(calls->latest[0].verb, "barrier");
  EXPECT_TRUE(calls->latest[0].over);
  EXPECT_EQ(calls->latest[1].verb, "all_reduce");
  EXPECT_EQ(calls->latest[1].type, "float32");
  EXPECT_EQ(calls->latest[1].count, 4u);
  EXPECT_EQ(calls->latest[1].element, 4u);
  EXPECT_FALSE(calls->latest[1].over);
}

TEST(CallRecord, KeepsTheLastCallsOfMany) {
  const auto record = CallRecord::Open("many");
  ASSERT_NE(record, nullptr);
  for (uint64_t number = 1; number <= 100; ++number) {
    record->Begin(number, Verb::kReduce, DataType::kInt8, number);
  }
  const auto calls = Read("many");
  ASSERT_TRUE(calls);
  ASSERT_THAT(calls->latest, SizeIs(kRecordedCalls));
  EXPECT_EQ(calls->latest.front().number, 101 - kRecordedCalls);
  EXPECT_EQ(calls->latest.back().number, 100u);
  EXPECT_EQ(calls->latest.back().count, 100u);
}

TEST(CallRecord, TellsWhetherAThreadWaitsForAMessage) {
  const auto record = CallRecord::Open("messages");
  ASSERT_NE(record, nullptr);
  record->BeginMessageWait(kAny, false);
  record->BeginMessageWait(3, false);
  record->EndMessageWait(kAny, false);
  EXPECT_TRUE(Read("messages")->awaits_message);
  record->EndMessageWait(3, false);
  EXPECT_FALSE(Read("messages")->awaits_message);
}

TEST(CallRecord, CountsTheMessagesOfEachPeer) {
  const auto record = CallRecord::Open("peers");
  ASSERT_NE(record, nullptr);
  record->CallMessage(kAny, false);
  record->CallMessage(64, true);  // Its place is that of rank 32.
  record->CallMessage(32, true);
  record->CallMessage(32, true);
  record->EndMessage(32, true);
  record->CallMessage(0, false);
  record->BeginMessageWait(0, false);
  const auto calls = Read("peers");
  ASSERT_TRUE(calls);
  ASSERT_THAT(calls->peers, SizeIs(3));
  EXPECT_EQ(calls->peers[0].peer, 0);
  EXPECT_FALSE(calls->peers[0].sends);
  EXPECT_TRUE(calls->peers[0].awaited);
  EXPECT_EQ(calls->peers[1].peer, 32);
  EXPECT_TRUE(calls->peers[1].sends);
  EXPECT_EQ(calls->peers[1].called, 2u);
  EXPECT_EQ(calls->peers[1].over, 1u);
  EXPECT_FALSE(calls->peers[1].awaited);
  EXPECT_EQ(calls->peers[2].peer, 64);
}

TEST(CallRecord, SaysNothingOfPeersIfTheyAreTooMany) {
  const auto record = CallRecord::Open("crowd");
  ASSERT_NE(record, nullptr);
  for (Rank peer = 0; peer < static_cast<Rank>(kRecordedPeers); ++peer) {
    record->CallMessage(peer, true);
  }
  EXPECT_THAT(Read("crowd")->peers, SizeIs(kRecordedPeers));
  record->CallMessage(0, false);
  EXPECT_THAT(Read("crowd")->peers, IsEmpty());
}

TEST(CallRecord, IsGoneWithItsGroup) {
  auto record = CallRecord::Open("gone");
  ASSERT_TRUE(Read("gone"));
  record.reset();
  EXPECT_FALSE(Read("gone"));
}

TEST(CallRecord, CutsALongName) {
  const auto record = CallRecord::Open(std::string(1000, 'x'));
  EXPECT_TRUE(Read(std::string(kMostGroupName, 'x')));
}

TEST(CallRecord, NamesAMonitoredBarrier) {
  const auto record = CallRecord::Open("monitored");
  record->BeginMonitoredBarrier(1);
  EXPECT_EQ(Read("monitored")->latest[0].verb, "monitored_barrier");
}

TEST(ReadCallRecords, FindsNothingInAProcessThatIsGone) {
  EXPECT_THAT(ReadCallRecords(-1, kMost), IsEmpty());
}

TEST(ParseCallRecord, RefusesWhatIsNone) {
  std::array<std::byte, sizeof(CallRecordLayout)> bytes{};
  EXPECT_FALSE(ParseCallRecord({}));
  EXPECT_FALSE(ParseCallRecord(bytes));
}

TEST(ParseCallRecord, BearsNonsense) {
  std::array<std::byte, sizeof(CallRecordLayout)> bytes;
  for (const int fill : {0x00, 0x01, 0x7f, 0xff}) {
    std::memset(bytes.data(), fill, bytes.size());
    std::memcpy(bytes.data() + offsetof(CallRecordLayout, magic), &kCallRecordMagic,
                sizeof kCallRecordMagic);
    const auto calls = ParseCallRecord(bytes);
    ASSERT_TRUE(calls);
    EXPECT_LE(calls->latest.size(), kRecordedCalls);
    EXPECT_LE(calls->group.size(), kMostGroupName);
  }
}

}  // namespace
}  // namespace hlaunch
