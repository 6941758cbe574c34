// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/task_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(TaskMessage, ComesBackAsItWas) {
  const TaskMessage message = {"start", "", "a b\n", "X=1"};
  const std::string bytes = EncodeTaskMessage(message);
  const auto size = TaskMessageBytes(bytes.substr(0, kTaskMessageHead));
  ASSERT_TRUE(size.ok());
  ASSERT_EQ(*size, bytes.size() - kTaskMessageHead);
  EXPECT_EQ(*DecodeTaskMessage(bytes.substr(kTaskMessageHead)), message);
}

TEST(TaskMessage, RefusesWhatIsNone) {
  EXPECT_FALSE(TaskMessageBytes("GET / HT").ok());
  EXPECT_FALSE(TaskMessageBytes(absl::StrCat("hlT1", "\xff\xff\xff\x7f")).ok());
  EXPECT_FALSE(TaskMessageBytes("hlT1").ok());
  EXPECT_FALSE(DecodeTaskMessage("no end").ok());
  EXPECT_FALSE(DecodeTaskMessage("").ok());
}

TEST(StartOf, ReadsWhatMessageOfWrote) {
  const auto start = StartOf(MessageOf({"/tmp", 077, {"sh", "-c", ""}, {"A=1", "B="}}));
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->directory, "/tmp");
  EXPECT_EQ(start->umask, 077);
  EXPECT_THAT(start->argv, ElementsAre("sh", "-c", ""));
  EXPECT_THAT(start->env, ElementsAre("A=1", "B="));
}

TEST(StartOf, RefusesMoreWordsThanThereAre) {
  EXPECT_FALSE(StartOf({"start", "/", "18", "2", "sh"}).ok());
  EXPECT_FALSE(StartOf({"start", "/", "18", "0", "sh"}).ok());
  EXPECT_FALSE(StartOf({"signal", "15"}).ok());
}

TEST(EnvironmentInTask, KeepsTheTasksOwnWhereTheAgentLeftItsOwn) {
  EXPECT_THAT(EnvironmentInTask({"CUDA_VISIBLE_DEVICES=3", "PATH=/bin"},
                                {"CUDA_VISIBLE_DEVICES=0", "PATH=/bin"},
                                {"CUDA_VISIBLE_DEVICES=0", "PATH=/bin", "RANK=3"}),
              UnorderedElementsAre("CUDA_VISIBLE_DEVICES=3", "PATH=/bin", "RANK=3"));
}

TEST(EnvironmentInTask, TakesWhatTheAgentSetAndNothingThatItTookAway) {
  EXPECT_THAT(EnvironmentInTask({"SLURM_PROCID=3", "OMP_NUM_THREADS=4", "OWN=1", "PMI_FD=5"},
                                {"SLURM_PROCID=0", "OMP_NUM_THREADS=4", "ONLY_TASK_0=1"},
                                {"OMP_NUM_THREADS=2", "ONLY_TASK_0=1"}),
              UnorderedElementsAre("OMP_NUM_THREADS=2", "OWN=1"))
      << "PMI_FD is of those that no worker inherits";
}

}  // namespace
}  // namespace hlaunch
