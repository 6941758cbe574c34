// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/may_ask.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

const ClusterUser kOwner = {"alice", 1001, false, false};
const ClusterUser kOther = {"bob", 1002, false, false};
const ClusterUser kNamesake = {"alice", 1002, false, false};
const ClusterUser kSameUid = {"carol", 1001, false, true};
const ClusterUser kAdmin = {"ada", 1003, true, false};
const ClusterUser kAdminOnHead = {"ada", 1003, true, true};
const ClusterUser kRoot = {"root", 0, true, false};
const ClusterUser kRootOnHead = {"root", 0, true, true};

HeadJob JobOfOwner() {
  HeadJob job;
  job.number = 7;
  job.user = "alice";
  job.uid = 1001;
  return job;
}

struct Row {
  std::vector<std::string> verbs;
  std::vector<ClusterUser> may, may_not;
};

TEST(MayAsk, IsDecidedByVerbAndUser) {
  const std::vector<ClusterUser> others = {kOther, kNamesake, kSameUid};
  const std::vector<Row> rows = {
      {{"submit", "jobs", "job", "nodes"}, {kOwner, kOther, kNamesake, kSameUid, kAdmin}, {}},
      {{"stop", "kill", "log", "meeting"}, {kOwner, kAdmin, kAdminOnHead, kRoot}, others},
      {{"drain", "undrain"}, {kAdmin, kAdminOnHead}, {kOwner, kOther, kSameUid}},
      {{"token", "throw_out"},
       {kRootOnHead},
       {kOwner, kOther, kSameUid, kAdmin, kAdminOnHead, kRoot}},
  };
  const HeadJob job = JobOfOwner();
  for (const Row& row : rows) {
    for (const std::string& verb : row.verbs) {
      for (const ClusterUser& user : row.may) EXPECT_TRUE(MayAsk(verb, user, &job).ok()) << verb;
      for (const ClusterUser& user : row.may_not) {
        EXPECT_EQ(MayAsk(verb, user, &job).code(), absl::StatusCode::kPermissionDenied) << verb;
      }
    }
  }
}

TEST(MayAsk, KnowsNoOtherQuestion) {
  for (const char* verb : {"", "start", "signal", "forget", "host", "part", "renew", "join"}) {
    EXPECT_EQ(MayAsk(verb, kRootOnHead, nullptr).code(), absl::StatusCode::kUnimplemented) << verb;
  }
}

TEST(MayAsk, ShowsTheCommandLineToItsUserAndAdmins) {
  const HeadJob job = JobOfOwner();
  EXPECT_TRUE(MaySeeWords(job, kOwner));
  EXPECT_TRUE(MaySeeWords(job, kAdmin));
  for (const ClusterUser& user : {kOther, kNamesake, kSameUid})
    EXPECT_FALSE(MaySeeWords(job, user));
}

}  // namespace
}  // namespace hlaunch
