// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Answers of torch's control server in a worker, and the snapshots that nodes send each other. Any
// text gives values within their limits that are safe for a terminal. The attribution of them ends,
// and nothing crashes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/watch/hang/flight_record.h"
#include "agent/watch/hang/snapshot_text.h"
#include "agent/watch/hang/told_hang.h"
#include "agent/watch/query/merge_stacks.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/hang/attribute_hang.h"
#include "rendezvous/round/hang/describe_hang.h"
#include "rendezvous/round/hang/same_state.h"

namespace hlaunch {
namespace {

constexpr Duration kAge = std::chrono::seconds(60);

void CheckShown(const std::string& text) {
  HLAUNCH_CHECK(std::all_of(text.begin(), text.end(),
                            [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

void Judge(const std::vector<RankSnapshot>& ranks) {
  const HangVerdict verdict = AttributeHang(ranks);
  CheckShown(DescribeHang(verdict, ranks, kAge));
  for (const Rank rank : RanksToFail(verdict, ranks)) {
    CheckShown(DescribeCulprit(verdict, ranks, rank, kAge));
  }
}

void CheckFlightRecord(absl::string_view json) {
  HLAUNCH_CHECK(FlightProgress(json).size() <= json.size());
  ParseGroups(json);
  WaitsForStore(json);
  const std::optional<FlightRecord> record = ParseFlightRecord(json);
  if (!record) return;
  RankSnapshot one, other;
  other.rank = 1;
  one.recorded = other.recorded = true;
  one.groups = record->groups;
  Judge({one, other});
}

// The questions become part of a request.
void CheckQuestions(absl::string_view json) {
  const std::vector<std::string> questions = RecorderQuestions(json);
  HLAUNCH_CHECK(questions.size() <= 8);
  for (const std::string& question : questions) {
    HLAUNCH_CHECK(question.find_first_of(" \r\n") == question.npos);
  }
}

// Values that were read are written so that they are read back as the same.
void CheckSnapshots(absl::string_view text) {
  const std::optional<std::vector<RankSnapshot>> snapshots = ParseSnapshots(text);
  if (!snapshots) return;
  Judge(*snapshots);
  for (const SameState& state : GroupByState(*snapshots)) CheckShown(state.text);
  CheckShown(DescribeProgress(*snapshots));
  const auto again = ParseSnapshots(SnapshotText(*snapshots));
  HLAUNCH_CHECK(again && again->size() == snapshots->size());
}

void CheckStacks(absl::string_view text) {
  const std::optional<std::vector<SharedStack>> stacks = ParseStacks(text);
  if (!stacks) return;
  for (const SharedStack& stack : MergeStacks(*stacks)) {
    CheckShown(stack.problem);
    for (const std::string& frame : stack.frames) CheckShown(frame);
  }
  HLAUNCH_CHECK(StacksText(*stacks, 1000).size() <= 1000);
}

void CheckTold(absl::string_view text) {
  const std::optional<ToldHang> hang = ParseToldHang(text);
  if (!hang) return;
  CheckShown(hang->text);
  const auto again = ParseToldHang(ToText(*hang));
  HLAUNCH_CHECK(again && again->text == hang->text && again->reasons == hang->reasons);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckFlightRecord(bytes);
  hlaunch::CheckQuestions(bytes);
  hlaunch::CheckSnapshots(bytes);
  hlaunch::CheckStacks(bytes);
  hlaunch::CheckTold(bytes);
  return 0;
}
