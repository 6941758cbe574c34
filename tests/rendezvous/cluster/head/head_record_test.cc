// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/head_record.h"

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

HeadJob AnyJob() {
  HeadJob job;
  job.number = 7;
  job.user = "alice";
  job.uid = 4294967294;
  job.request.name = "train.py";
  job.request.script = {"train.py", "--lr", "1"};
  job.request.environment = {"A=b"};
  job.state = ClusterJobState::kEnding;
  job.why = job.told_to_end = "stopped by alice";
  job.signal = SIGTERM;
  job.grace_s = 5;
  job.token = "secret";
  job.meeting = "node1:5000";
  job.device_kind = "hpu";
  job.spares = 1;
  job.submitted_ms = 1'800'000'000'000;
  job.goodput = 0.5;
  HeadPart part;
  part.node_rank = 1;
  part.host = "node2";
  part.boot_id = "boot1";
  part.devices = {0, 3};
  part.workers = 2;
  part.state = PartState::kEnded;
  part.signalled = SIGTERM;
  part.is_leaving = true;
  part.exit_code = 143;
  job.parts = {part};
  return job;
}

TEST(HeadRecord, KeepsAJob) {
  const nlohmann::json kept = JobToJson(AnyJob());
  const absl::StatusOr<HeadJob> read = ReadHeadJob(nlohmann::json::parse(kept.dump()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(JobToJson(*read), kept);
  EXPECT_EQ(read->uid, 4294967294);
  EXPECT_EQ(read->parts.at(0).exit_code, 143);
  EXPECT_TRUE(read->parts.at(0).is_leaving);
}

TEST(HeadRecord, KeepsHosts) {
  HeadHost host;
  host.name = "node1";
  host.drained = "ECC";
  host.stop_ms = 7;
  host.facts = HostFacts();
  host.facts->boot_id = "boot1";
  host.seen_ms = 5;
  HeadHost there = host;
  there.name = "node2";
  there.connected = true;
  const nlohmann::json kept = HostsToJson(9, {{"node1", host}, {"node2", there}});
  const absl::StatusOr<HeadRecord> read = ReadHosts(kept);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->last_number, 9u);
  EXPECT_EQ(read->hosts.at(0).drained, "ECC");
  EXPECT_EQ(read->hosts.at(0).facts->boot_id, "boot1");
  EXPECT_EQ(read->hosts.at(0).seen_ms, 5);
  EXPECT_EQ(read->hosts.at(0).stop_ms, 7);
  EXPECT_EQ(read->hosts.at(1).seen_ms, 0);
}

TEST(HeadRecord, RefusesWhatIsNone) {
  std::vector<nlohmann::json> wrong;
  for (const auto& [name, value] :
       std::map<std::string, nlohmann::json>{{"number", 0},
                                             {"state", 5},
                                             {"uid", -1},
                                             {"parts", "x"},
                                             {"user", 3},
                                             {"parts", nlohmann::json::array()}}) {
    nlohmann::json job = JobToJson(AnyJob());
    job[name] = value;
    EXPECT_EQ(ReadHeadJob(job).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(ReadHosts({{"hosts", {{{"name", "../x"}}}}}).ok());
}

}  // namespace
}  // namespace hlaunch
