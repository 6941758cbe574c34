// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/cluster/head/head_world.h"

namespace hlaunch {
namespace {

// The state on the disk when the head is killed before it has written one of the files of a turn.
class HeadFilesTest : public testing::Test {
 protected:
  HeadFilesTest()
      : path_(absl::StrCat(testing::TempDir(), "head_files_", ::getpid())),
        folder_(*TrustFolder::Make(path_, ::geteuid(), ::getegid())) {}
  ~HeadFilesTest() override { std::filesystem::remove_all(path_); }

  // Starts a job of two nodes and writes all of it to the disk.
  void SetUp() override {
    for (const char* host : {"node1", "node2"}) world_.Come(host, FactsOf(8));
    job_ = world_.Submit(RequestOf(2));
    world_.Tell("node1", job_, PartState::kRunning, "node1:5000");
    world_.Tell("node2", job_, PartState::kRunning);
    ASSERT_TRUE(Write().ok());
  }

  absl::Status Write() { return WriteChanges(folder_, world_.table->TakeChanges(), *world_.table); }
  void WriteUntil(const std::string& file) {
    const std::string in_the_way = absl::StrCat(path_, "/.", file, ".draft");
    ASSERT_EQ(::mkdir(in_the_way.c_str(), 0700), 0);
    ASSERT_TRUE(absl::IsUnavailable(Write()));
    ASSERT_EQ(::rmdir(in_the_way.c_str()), 0);
  }
  HeadRecord Read() const { return ReadHeadRecord(folder_).value(); }

  const std::string path_;
  const TrustFolder folder_;
  HeadWorld world_;
  uint64_t job_ = 0;
};

TEST_F(HeadFilesTest, APartIsLostBeforeItsHostIsGone) {
  ASSERT_TRUE(world_.table->ThrowOut("node2", "ada", world_.t()).ok());
  WriteUntil("cluster.json");
  EXPECT_EQ(Read().hosts.size(), 2u);
  EXPECT_EQ(Read().jobs.at(0).parts.at(1).state, PartState::kLost);
}

TEST_F(HeadFilesTest, AHostIsThereAsLongAsAPartOfItIs) {
  ASSERT_TRUE(world_.table->ThrowOut("node2", "ada", world_.t()).ok());
  WriteUntil("job-1.json");
  EXPECT_EQ(Read().hosts.size(), 2u);
  EXPECT_EQ(Read().jobs.at(0).parts.at(1).state, PartState::kRunning);
}

TEST_F(HeadFilesTest, ANumberIsKeptBeforeTheLastJobIsForgotten) {
  for (const char* host : {"node1", "node2"}) world_.Tell(host, job_, PartState::kEnded, "", 0);
  world_.Tell("node1", world_.Submit(RequestOf(1)), PartState::kEnded, "", 0);
  ASSERT_TRUE(Write().ok());
  EXPECT_EQ(ReadHeadRecord(folder_)->last_number, 1u);  // The other is in a job's file.
  world_.Pass(std::chrono::hours(24 * 8));
  WriteUntil("cluster.json");
  EXPECT_EQ(Read().jobs.size(), 2u);
  HeadTable again({}, Read(), world_.t());
  again.Tick(world_.t());
  ASSERT_TRUE(WriteChanges(folder_, again.TakeChanges(), again).ok());
  EXPECT_EQ(Read().jobs.size(), 0u);
  EXPECT_EQ(Read().last_number, 2u);
}

TEST_F(HeadFilesTest, WhatWasBeingWrittenIsRemoved) {
  const std::string draft = absl::StrCat(path_, "/.job-7.json.draft");
  std::ofstream(draft) << "{\"number\": 7";
  EXPECT_EQ(Read().jobs.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(draft));
}

}  // namespace
}  // namespace hlaunch
