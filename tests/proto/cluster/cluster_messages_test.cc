// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/cluster_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A message of each kind. Every field has a value that differs from that of a new message.
JobRequest FullRequest() {
  JobRequest m;
  m.name = "train.py";
  m.min_nodes = 2;
  m.max_nodes = 4;
  m.workers = 8;
  m.devices = "hpu";
  m.hosts = {"node1", "node-2.rack_3"};
  m.labels = {"rack3"};
  m.exclusive = true;
  m.spares = 1;
  m.options = {"--max-restarts", "3"};
  m.script = {"train.py", "--lr", "0.1", ""};
  m.environment = {"A=", "PATH=/bin:ä"};
  m.limits = {"7:1024"};
  m.directory = "/home/alice";
  m.umask = 027;
  m.grace_s = 5;
  return m;
}

PartView FullPartView() { return {3, "node3", "ended", {0, 7}, 134}; }

JobView FullJobView() {
  JobView m;
  m.number = UINT64_MAX;
  m.version = 17;
  m.user = "alice";
  m.name = "train.py";
  m.state = ClusterJobState::kEnded;
  m.why = "node2: rank 3 exited with 1";
  m.min_nodes = 2;
  m.max_nodes = 3;
  m.workers = 4;
  m.device_kind = "hpu";
  m.parts = {FullPartView(), PartView()};
  m.submitted_ms = 1'795'000'000'000;
  m.started_ms = 1'795'000'000'001;
  m.ended_ms = 1'795'000'000'002;
  m.exit_code = 0;
  m.round = 2;
  m.restarts = 1;
  m.goodput = 0.75;
  m.words = {"hlaunch", "train.py"};
  return m;
}

HostFacts FullFacts() {
  return {3, "0.9.0", "e3b0", {{4, "hpu", "it is hot"}, {}}, 16, {"rack3"}, "no cgroups"};
}

PartTold FullTold() {
  return {7, PartState::kFailed, "node1:4321", 7, "no such directory", 3, 2, 0.5};
}

PartOrder FullOrder() {
  return {7,
          1,
          2,
          3,
          1,
          "alice",
          4'294'967'295u,
          "node1:4321",
          "secret",
          {0, 1},
          "hpu",
          2,
          FullRequest()};
}

HostView FullHostView() {
  return {"node1",   "drained",       "a fan",           "0.9.0",          "hpu", 8, 4, 16, 12,
          {"rack3"}, {1, 1ull << 60}, 1'795'000'000'000, 1'795'000'000'001};
}

// A value of another type than `value` has.
json OfAnotherType(const json& value) {
  if (value.is_string()) return 7;
  if (value.is_boolean()) return 1;
  if (value.is_number()) return "7";
  if (value.is_array()) return json::array({json::array()});
  return json::array();
}

// A value of the same type beyond every limit; null if there is no limit.
json BeyondLimits(const json& value) {
  if (value.is_string()) return std::string(5 << 20, 'a');
  if (value.is_number_float()) return 1e100;
  if (value.is_number()) return -1'000'000'000'000;
  if (value.is_array()) return json(70'000, value[0]);
  return nullptr;
}

template <typename T>
void ExpectRefused(const json& body, const std::string& field,
                   absl::StatusOr<T> (*read)(const json&)) {
  const absl::Status status = read(body).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
  EXPECT_THAT(std::string(status.message()), HasSubstr(": " + field + " "));
  EXPECT_LT(status.message().size(), 200u);
}

// Checks that `full` arrives as it was sent. Each of its fields must differ from a new message's,
// may be missing, and is refused by name with another type or beyond its limits.
template <typename T>
void Check(const T& full, absl::StatusOr<T> (*read)(const json&)) {
  const json sent = ToJson(full);
  const auto came = read(*ParseObject(TextOf(sent)));
  ASSERT_TRUE(came.ok()) << came.status();
  EXPECT_EQ(*came, full);
  const auto fresh = read(json::object());
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(*fresh, T());
  const json plain = ToJson(T());
  for (const auto& [name, value] : sent.items()) {
    EXPECT_TRUE(!plain.contains(name) || plain[name] != value) << name;
    json changed = sent;
    changed[name] = OfAnotherType(value);
    ExpectRefused(changed, name, read);
    changed[name] = nullptr;
    ExpectRefused(changed, name, read);
    changed[name] = BeyondLimits(value);
    if (!changed[name].is_null()) ExpectRefused(changed, name, read);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(read(json::array()).status()));
}

TEST(ClusterMessages, JobRequest) { Check(FullRequest(), ReadJobRequest); }
TEST(ClusterMessages, PartView) { Check(FullPartView(), ReadPartView); }
TEST(ClusterMessages, JobView) { Check(FullJobView(), ReadJobView); }
TEST(ClusterMessages, MeetingAnswer) {
  Check(MeetingAnswer{"node1:4321", "secret"}, ReadMeetingAnswer);
}
TEST(ClusterMessages, DeviceFact) { Check(DeviceFact{1, "hpu", "hot"}, ReadDeviceFact); }
TEST(ClusterMessages, HostFacts) { Check(FullFacts(), ReadHostFacts); }
TEST(ClusterMessages, PartTold) { Check(FullTold(), ReadPartTold); }
TEST(ClusterMessages, PartOrder) { Check(FullOrder(), ReadPartOrder); }
TEST(ClusterMessages, SignalOrder) { Check(SignalOrder{7, 9}, ReadSignalOrder); }
TEST(ClusterMessages, ForgetOrder) { Check(ForgetOrder{7}, ReadForgetOrder); }
TEST(ClusterMessages, LogQuestion) { Check(LogQuestion{7, 1, "0:17", 20, 3}, ReadLogQuestion); }
TEST(ClusterMessages, LogAnswer) { Check(LogAnswer{"a\nb\n", "0:4", true, true}, ReadLogAnswer); }
TEST(ClusterMessages, JobsQuestion) { Check(JobsQuestion{true, true}, ReadJobsQuestion); }
TEST(ClusterMessages, JobQuestion) { Check(JobQuestion{7, 3, 20}, ReadJobQuestion); }
TEST(ClusterMessages, StopQuestion) { Check(StopQuestion{7, 10}, ReadStopQuestion); }
TEST(ClusterMessages, DrainQuestion) {
  Check(DrainQuestion{"node1", "a fan", 60}, ReadDrainQuestion);
}
TEST(ClusterMessages, HostView) { Check(FullHostView(), ReadHostView); }

// Texts for people are cut if they are too long, so that the reader accepts them.
TEST(ClusterMessages, TextsForPeopleAreCutBetweenCharactersAndNotRefused) {
  JobView view;
  view.why = std::string(4095, 'a') + "\u00e4" + std::string(100, 'b');
  EXPECT_EQ(ReadJobView(ToJson(view))->why, std::string(4095, 'a'));
  view.why = std::string(3000, '\xff') + std::string("\0", 1);  // Each takes three bytes as U+FFFD.
  const auto read = ReadJobView(json::parse(TextOf(ToJson(view))));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->why.size(), 4095u);
  view.why = "\u00e4";
  EXPECT_EQ(ReadJobView(ToJson(view))->why, "\u00e4");
}

TEST(ClusterMessages, AJobsWordsAreAsManyAsOptionsAndScriptTogether) {
  JobView view;
  view.words.assign(40'000, "x");
  EXPECT_TRUE(ReadJobView(ToJson(view)).ok());
  view.words.push_back("x");
  EXPECT_FALSE(ReadJobView(ToJson(view)).ok());
}

TEST(ClusterMessages, NamesOfHostsAreChecked) {
  json request = ToJson(FullRequest());
  request["hosts"] = {"node1", "../node2"};
  ExpectRefused(request, "hosts", ReadJobRequest);
  ExpectRefused({{"host", "-x"}}, "host", ReadDrainQuestion);
  ExpectRefused({{"name", "a b"}}, "name", ReadHostView);
}

TEST(ClusterMessages, VariablesHaveNames) {
  for (const char* wrong : {"", "=1", "PATH"}) {
    ExpectRefused({{"environment", json::array({wrong})}}, "environment", ReadJobRequest);
  }
}

TEST(ClusterMessages, RangesAreOrdered) {
  ExpectRefused({{"min_nodes", 3}, {"max_nodes", 2}}, "max_nodes", ReadJobRequest);
  ExpectRefused({{"min_nodes", 3}, {"max_nodes", 2}}, "max_nodes", ReadPartOrder);
}

TEST(ClusterMessages, StatesAreThoseThatThereAre) {
  for (const ClusterJobState state :
       {ClusterJobState::kWaiting, ClusterJobState::kStarting, ClusterJobState::kRunning,
        ClusterJobState::kEnding, ClusterJobState::kEnded}) {
    JobView view;
    view.state = state;
    EXPECT_EQ(ToJson(view)["state"], ClusterJobStateName(state));
    EXPECT_EQ(ReadJobView(ToJson(view))->state, state);
  }
  ExpectRefused({{"state", "sleeping"}}, "state", ReadJobView);
  ExpectRefused({{"state", "waiting"}}, "state", ReadPartTold);
}

TEST(ClusterMessages, AFaultWithinAPartIsNamed) {
  json order = ToJson(FullOrder());
  order["request"]["umask"] = 01000;
  ExpectRefused(order, "umask", ReadPartOrder);
  json facts = ToJson(FullFacts());
  facts["devices"][1]["id"] = -1;
  ExpectRefused(facts, "id", ReadHostFacts);
}

TEST(ClusterMessages, ALogMayHoldAnyByte) {
  LogAnswer answer;
  answer.text = std::string("a\0b\xff\n", 5);
  const auto read = ReadLogAnswer(*ParseObject(TextOf(ToJson(answer))));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->text,
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\n");
}

TEST(IsClusterHostName, TakesWhatFilesAndCertificatesCanHave) {
  for (const char* name : {"a", "node1", "1node", "node-1.rack_2.example"}) {
    EXPECT_TRUE(IsClusterHostName(name)) << name;
  }
  for (const char* name : {"", ".", "..", "-a", "_a", ".a", "a/b", "A", "a b", "a\n", "ä", "a:b"}) {
    EXPECT_FALSE(IsClusterHostName(name)) << name;
  }
  EXPECT_TRUE(IsClusterHostName(std::string(kMaxHostName, 'a')));
  EXPECT_FALSE(IsClusterHostName(std::string(kMaxHostName + 1, 'a')));
}

}  // namespace
}  // namespace hlaunch
