// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/cluster_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = 1'764'000'000'000;

JobView Running() {
  JobView job;
  job.number = 17;
  job.user = "anna";
  job.name = "train.py";
  job.state = ClusterJobState::kRunning;
  job.min_nodes = job.max_nodes = 2;
  job.workers = 8;
  job.device_kind = "hpu";
  job.submitted_ms = kNow - 3'600'000;
  job.started_ms = kNow - 3'500'000;
  job.round = 3;
  job.restarts = 2;
  job.goodput = 0.934;
  for (int rank = 0; rank < 2; ++rank) {
    PartView part;
    part.node_rank = rank;
    part.host = rank == 0 ? "node0" : "node1";
    part.state = "running";
    part.devices = {0, 1, 2, 3, 4, 5, 6, 7};
    job.parts.push_back(part);
  }
  return job;
}

JobView Waiting() {
  JobView job;
  job.number = 1234567;
  job.user = "a-user-with-a-long-name";
  job.name = "a-very-long-name-of-a-script-that-goes-on-and-on.py";
  job.why =
      "needs 2 nodes with 8 hpu; 1 is free, node3 is drained: ECC errors on two of its devices, "
      "the technician comes on Monday";
  job.min_nodes = 2;
  job.max_nodes = 16;
  job.submitted_ms = kNow - 200'000'000;
  return job;
}

void ExpectFits(const std::string& text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    EXPECT_LE(columns, 80u) << line;
  }
}

TEST(ClusterJobsText, FitsAndSaysWhyAJobWaits) {
  const std::string text = ClusterJobsText({{Running(), Waiting()}, {}}, kNow);
  ExpectFits(text);
  EXPECT_THAT(text, HasSubstr("17 "));
  EXPECT_THAT(text, HasSubstr("93 %"));
  EXPECT_THAT(text, HasSubstr("2:16"));
  EXPECT_THAT(text, HasSubstr("    needs 2 nodes with 8 hpu; 1 is free, node3 is drained:"));
  EXPECT_EQ(ClusterJobsText({}, kNow), "no jobs\n");
}

TEST(HostsText, KeepsItsColumnsBelowEachOther) {
  HostView host;
  host.name = "nöde0";
  host.state = "free";
  host.version = "0.1.0+0123456789ab";  // It is cut, with an ellipsis of three bytes.
  host.labels = {"rack7"};
  const std::string text = HostsText({"", {host}, {}}, kNow);
  EXPECT_THAT(text, HasSubstr("HOST   STATE  DEVICES  SLOTS  JOBS  VERSION       LABELS\n"
                              "nöde0  free   -        0/0    -     0.1.0+01234…  rack7\n"));
}

TEST(ClusterJobsText, SaysWhatIsNotInTheList) {
  const std::string text = ClusterJobsText({{Running()}, {312, 2}}, kNow);
  ExpectFits(text);
  EXPECT_THAT(text, HasSubstr("\nand 312 older jobs are not shown: too many for one answer\n"
                              "and 2 cannot be read: "));
  EXPECT_THAT(ClusterJobsText({{}, {0, 1}}, kNow), testing::StartsWith("and 1 cannot be read: "));
}

TEST(ClusterJobText, ShowsItsNodes) {
  const std::string text = ClusterJobText(Running(), kNow);
  ExpectFits(text);
  EXPECT_THAT(text, HasSubstr("job 17 of anna, train.py: running\n"));
  EXPECT_THAT(text, HasSubstr("2, 8 workers each, each on one hpu"));
  EXPECT_THAT(text, HasSubstr("3, 2 restarts, goodput 93 %"));
  EXPECT_THAT(text, HasSubstr("node1"));
  JobView ended = Running();
  ended.state = ClusterJobState::kEnded;
  ended.exit_code = 3;
  ended.why = "node 1 on node1 ended with 3";
  EXPECT_THAT(ClusterJobText(ended, kNow), HasSubstr("train.py: ended 3\n  node 1 on node1"));
}

TEST(ClusterTexts, ObeyNothingOfStrangers) {
  JobView job = Waiting();
  job.user = "\x1b[31mred";
  job.name = "x\x1b]0;title\x07\ny";
  job.why = "\x1b[2Jgone\nroot: all is well";
  PartView part;
  part.host = "h";
  part.state = "lost: \x1b[1m\xe2\x80\xae";
  job.parts = {part};
  HostView host;
  host.name = "node0";
  host.state = "drained";
  host.why = "\x1b[5mblink\r\nforged";
  host.labels = {"a\x1b[7m"};
  for (const std::string& text : {ClusterJobsText({{job}, {}}, kNow), ClusterJobText(job, kNow),
                                  HostsText({"h:1", {host}, {}}, kNow), WaitingText(job)}) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\r")));
    EXPECT_THAT(text, Not(HasSubstr("\nroot")));
    EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
  }
}

TEST(HostsText, ShowsWhatIsFreeAndWhyNot) {
  HostView free;
  free.name = "node0";
  free.state = "busy";
  free.version = "0.2.0";
  free.device_kind = "hpu";
  free.devices = 8;
  free.devices_free = 4;
  free.slots = 64;
  free.slots_free = 60;
  free.jobs = {17, 18};
  free.labels = {"ib", "rack7"};
  HostView away = free;
  away.name = "node1";
  away.state = "away";
  away.seen_ms = kNow - 120'000;
  away.why = "not heard of";
  const std::string text = HostsText({"node0:29400", {free, away}, {1, 0}}, kNow);
  EXPECT_THAT(text, HasSubstr("\nand 1 host is not shown: "));
  ExpectFits(text);
  EXPECT_THAT(text, HasSubstr("4/8 hpu"));
  EXPECT_THAT(text, HasSubstr("60/64"));
  EXPECT_THAT(text, HasSubstr("17,18"));
  EXPECT_THAT(text, HasSubstr("ib,rack7"));
  EXPECT_THAT(text, HasSubstr("    last heard 2 min 0 s ago; not heard of\n"));
}

TEST(ClusterTexts, AreJsonForPrograms) {
  const auto jobs = nlohmann::json::parse(ClusterJobsJson({{Running(), Waiting()}, {312, 0}}));
  EXPECT_EQ(jobs["jobs"].size(), 2u);
  EXPECT_EQ(jobs["left_out"], 312);
  EXPECT_EQ(jobs["jobs"][0]["number"], 17);
  EXPECT_EQ(jobs["jobs"][0]["parts"].size(), 2u);
  HostView host;
  host.name = "node0";
  const auto hosts = nlohmann::json::parse(HostsJson({"node0:29400", {host}, {}}));
  EXPECT_EQ(hosts["head"], "node0:29400");
  EXPECT_EQ(hosts["hosts"][0]["name"], "node0");
}

}  // namespace
}  // namespace hlaunch
