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
  record->BeginMessageWait();
  record->BeginMessageWait();
  record->EndMessageWait();
  EXPECT_TRUE(Read("messages")->awaits_message);
  record->EndMessageWait();
  EXPECT_FALSE(Read("messages")->awaits_message);
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
