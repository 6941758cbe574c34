// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/record_convert.h"

#include <stdlib.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/base/release.h"
#include "rendezvous/round/table/round_table.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/journal.h"

// Checks that every field of a job's record survives the journal and a restart of the rendezvous.
// The fields are found through the message's descriptor. A new field is thus tested without a
// change here, and the test fails as long as a conversion leaves it out.

namespace hlaunch {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fills every field and both elements of each repeated field: with numbers from 1 to 97, texts in
// ascending order, enum values other than the first, and true. Skips what no record keeps because a
// node tells it again when it comes back.
class Filler {
 public:
  void Fill(Message* message) {
    const google::protobuf::Descriptor& type = *message->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* field = type.field(i);
      if (field->full_name() == "hlaunch.v1.NodeInfo.other_addresses") continue;
      for (int times = field->is_repeated() ? 2 : 1; times > 0; --times) Put(message, field);
    }
  }

 private:
  void Put(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    const bool many = field->is_repeated();
    const int64_t number = Number(field);
    switch (field->cpp_type()) {
#define HLAUNCH_PUT(TYPE, Type, value)                        \
  case FieldDescriptor::CPPTYPE_##TYPE:                       \
    return many ? reflection.Add##Type(message, field, value) \
                : reflection.Set##Type(message, field, value)
      HLAUNCH_PUT(INT32, Int32, static_cast<int32_t>(number));
      HLAUNCH_PUT(INT64, Int64, number);
      HLAUNCH_PUT(UINT32, UInt32, static_cast<uint32_t>(number));
      HLAUNCH_PUT(UINT64, UInt64, static_cast<uint64_t>(number));
      HLAUNCH_PUT(FLOAT, Float, static_cast<float>(number));
      HLAUNCH_PUT(DOUBLE, Double, static_cast<double>(number));
      HLAUNCH_PUT(BOOL, Bool, true);
      HLAUNCH_PUT(STRING, String, Text(field));
      HLAUNCH_PUT(ENUM, EnumValue, Value(*field->enum_type()));
#undef HLAUNCH_PUT
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(many ? reflection.AddMessage(message, field)
                         : reflection.MutableMessage(message, field));
    }
  }

  // The next number, or the only value that fits the field.
  int64_t Number(const FieldDescriptor* field) {
    ++count_;
    static const std::map<std::string, int64_t> kNumbers = {
        {"hlaunch.v1.NodeInfo.protocol", kProtocolMajor},
        {"hlaunch.v1.Policy.min_nodes", 2},
        {"hlaunch.v1.Policy.max_nodes", 90},
        {"hlaunch.v1.JobRecord.round_nodes", 98},      // Above any node's rank.
        {"google.protobuf.Timestamp.nanos", 5000000},  // The record keeps milliseconds.
    };
    const auto bound = kNumbers.find(field->full_name());
    if (bound != kNumbers.end()) return bound->second;
    return field->name() == "incarnation" ? 1000 + count_ : 1 + count_ % 97;
  }

  std::string Text(const FieldDescriptor* field) const {
    if (field->name() == "job_id") return "job";
    if (field->full_name() == "hlaunch.v1.NodeInfo.address") return "10.0.0.7";
    if (field->full_name() == "hlaunch.v1.NodeInfo.release") return kRelease;
    return absl::StrFormat("text %05d", count_);
  }

  int Value(const EnumDescriptor& type) const {
    return type.value(1 + count_ % (type.value_count() - 1))->number();
  }

  int count_ = 0;
};

// A journal's directory.
class RecordTest : public testing::TestWithParam<int> {
 protected:
  RecordTest() {
    std::string path = testing::TempDir() + "/hlaunch-record-XXXXXX";
    directory_ = ::mkdtemp(path.data());
  }
  ~RecordTest() override { std::filesystem::remove_all(directory_); }

  // The record after it was written to a journal that was closed and opened again.
  JobRecord WrittenAndRead(const JobRecord& record) const {
    EXPECT_TRUE(Open()->Keep(record, 0).ok());
    const auto loaded = Open()->List();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->records.size(), 1u);
    return loaded->records.at(0).record;
  }

 private:
  std::unique_ptr<Journal> Open() const {
    auto journal = Journal::Open({directory_ + "/state", {}});
    EXPECT_TRUE(journal.ok()) << journal.status();
    return std::move(journal).value();
  }

  std::string directory_;
};

std::string Differences(const Message& a, const Message& b) {
  std::string text;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&text);
  differencer.Compare(a, b);
  return text;
}

TEST_P(RecordTest, EveryFieldSurvivesTheJournalAndARestart) {
  v1::JobRecord filled;
  Filler().Fill(&filled);
  filled.set_state(static_cast<v1::JobState>(GetParam()));
  const absl::StatusOr<JobRecord> record = FromProto(filled);
  ASSERT_TRUE(record.ok()) << record.status();

  const JobRecord read = WrittenAndRead(*record);
  JobRules rules;
  rules.job_id = read.job_id;
  rules.policy = read.policy;
  const RoundTable restored(rules, read, Instant{} + std::chrono::hours(1));
  const JobRecord again = WrittenAndRead(restored.Record());

  EXPECT_EQ(Differences(filled, ToProto(again)), "");
}

// Each case breaks one number of a good record; the error must name the field.
TEST(RecordConvert, RefusesNumbersOutOfRange) {
  using Break = void (*)(v1::JobRecord*);
  const std::pair<const char*, Break> cases[] = {
      {"round", [](v1::JobRecord* m) { m->set_round(-1); }},
      {"restarts", [](v1::JobRecord* m) { m->set_restarts(-1); }},
      {"round_nodes", [](v1::JobRecord* m) { m->set_round_nodes(kMaxNodes + 1); }},
      {"succeeded", [](v1::JobRecord* m) { m->set_succeeded(-1); }},
      {"stopped", [](v1::JobRecord* m) { m->set_stopped(-1); }},
      {"world_size", [](v1::JobRecord* m) { m->set_world_size(-1); }},
      {"master_port", [](v1::JobRecord* m) { m->set_master_port(65536); }},
      {"coordinator_port", [](v1::JobRecord* m) { m->set_coordinator_port(65536 + 4000); }},
      {"total_failures", [](v1::JobRecord* m) { m->set_total_failures(-1); }},
      {"total_excluded", [](v1::JobRecord* m) { m->set_total_excluded(-1); }},
      {"judged_restarts", [](v1::JobRecord* m) { m->mutable_progress()->set_judged_restarts(-1); }},
      {"stuck_restarts", [](v1::JobRecord* m) { m->mutable_progress()->set_stuck_restarts(-1); }},
      {"in_a_row", [](v1::JobRecord* m) { m->mutable_restart_log()->set_in_a_row(-1); }},
      {"ghost.pid", [](v1::JobRecord* m) { m->mutable_ghosts(1)->set_pid(-1); }},
      {"held.node_rank",
       [](v1::JobRecord* m) { m->mutable_held_ranks(1)->set_node_rank(kMaxNodes); }},
      {"member.told", [](v1::JobRecord* m) { m->mutable_members(1)->set_told(-1); }},
      {"member.node_rank", [](v1::JobRecord* m) { m->mutable_members(1)->set_node_rank(-1); }},
      {"member.node_rank",
       [](v1::JobRecord* m) {  // The round has ranks 0 to 97.
         m->mutable_members(1)->set_told(m->round());
         m->mutable_members(1)->set_node_rank(98);
       }},
      {"member.first_rank", [](v1::JobRecord* m) { m->mutable_members(1)->set_first_rank(-1); }},
  };
  v1::JobRecord good;
  Filler().Fill(&good);
  ASSERT_TRUE(FromProto(good).ok()) << FromProto(good).status();
  for (const auto& [field, make_bad] : cases) {
    v1::JobRecord message = good;
    make_bad(&message);
    const absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(status.message().find(field), 0u) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(States, RecordTest,
                         testing::Range<int>(v1::JOB_STATE_FORMING, v1::JOB_STATE_OVER + 1));

}  // namespace
}  // namespace hlaunch
