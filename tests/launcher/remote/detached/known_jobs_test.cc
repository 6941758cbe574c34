// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/known_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/remote/detached/meeting_words.h"
#include "launcher/text/environment.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A directory that only this test uses.
class KnownJobsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hlaunch-jobs-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string jobs() const { return directory_ + "/state/hlaunch"; }

  // Makes a job that this process holds.
  DetachedJob Make(const std::string& id, int64_t started_ms) {
    DetachedJob job;
    job.id = id;
    const auto made = MakeJobDirectory(jobs(), id);
    EXPECT_TRUE(made.ok()) << made.status();
    job.directory = *made;
    job.holder = PlaceOfThisProcess();
    job.started_ms = started_ms;
    job.words = {"hlaunch", "--detach", "train.py"};
    EXPECT_TRUE(KeepJob(job).ok());
    return job;
  }

  std::string directory_;
};

std::vector<std::string> Ids(const std::vector<DetachedJob>& jobs) {
  std::vector<std::string> ids;
  for (const DetachedJob& job : jobs) ids.push_back(job.id);
  return ids;
}

TEST(JobsDirectory, IsWhereStateIsKept) {
  EXPECT_EQ(JobsDirectory(Environment({"HOME=/h"})), "/h/.local/state/hlaunch");
  EXPECT_EQ(JobsDirectory(Environment({"HOME=/h", "XDG_STATE_HOME=/s"})), "/s/hlaunch");
  EXPECT_EQ(JobsDirectory(Environment({"HOME=/h", "XDG_STATE_HOME=s"})), "/h/.local/state/hlaunch");
  EXPECT_EQ(JobsDirectory(Environment()), "");
}

TEST_F(KnownJobsTest, ReadsWhatWasKept) {
  const DetachedJob made = Make("a", 1'000);
  auto job = ReadJob(made.directory);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->life, JobLife::kRuns);
  EXPECT_THAT(job->words, ElementsAre("hlaunch", "--detach", "train.py"));
  EXPECT_FALSE(HasStarted(made.directory));
  ASSERT_TRUE(KeepStarted(made.directory).ok());
  EXPECT_TRUE(HasStarted(made.directory));
  ASSERT_TRUE(KeepMeeting(made.directory, {"127.0.0.1:7", "", "on", "", "", ""}, "secret").ok());
  EXPECT_EQ(ReadMeeting(made.directory)->token_file, made.directory + "/token");
  ASSERT_TRUE(KeepEnding(made.directory, {3, 2'000}).ok());
  job = ReadJob(made.directory);
  EXPECT_EQ(job->life, JobLife::kEnded);
  EXPECT_EQ(job->ending->exit_code, 3);
}

TEST_F(KnownJobsTest, SaysWhyAFileHasNoRoom) {
  const DetachedJob job = Make("a", 1);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = 10;  // The first write is short.
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status kept = KeepEnding(job.directory, {1, 2});
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(std::string(kept.message()), HasSubstr("end.json: File too large"));
}

TEST_F(KnownJobsTest, IsForItsUserAlone) {
  const DetachedJob job = Make("a", 1'000);
  ASSERT_TRUE(KeepMeeting(job.directory, {}, "secret").ok());
  struct stat found = {};
  ASSERT_EQ(::stat(job.directory.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  for (const char* name : {"job.json", "meeting.json", "token"}) {
    ASSERT_EQ(::stat((job.directory + "/" + name).c_str(), &found), 0) << name;
    EXPECT_EQ(found.st_mode & 0777, 0600u) << name;
  }
}

TEST(Lives, IsDecidedByBootNamespaceAndStart) {
  const ProcessPlace here = PlaceOfThisProcess();
  EXPECT_EQ(Lives(here, here), true);
  ProcessPlace other = here;
  other.start_time += 1;  // Another process has its pid now.
  EXPECT_EQ(Lives(other, here), false);
  other = here;
  other.boot_id = "another";
  EXPECT_EQ(Lives(other, here), false);
  other.host = "another";
  EXPECT_EQ(Lives(other, here), std::nullopt);
  other = here;
  other.pid_namespace = "pid:[1]";
  EXPECT_EQ(Lives(other, here), std::nullopt);
}

TEST_F(KnownJobsTest, ChoosesTheOnlyOneThatMayBeMeant) {
  EXPECT_TRUE(absl::IsNotFound(ChooseJob({}, "", true).status()));
  Make("a", 1'000);
  EXPECT_EQ(ChooseJob(KnownJobs(jobs()), "", false)->id, "a");
  const DetachedJob second = Make("b", 2'000);
  const auto both = ChooseJob(KnownJobs(jobs()), "", false);
  EXPECT_TRUE(absl::IsInvalidArgument(both.status()));
  EXPECT_THAT(std::string(both.status().message()), HasSubstr("\n  b    running"));
  ASSERT_TRUE(KeepEnding(second.directory, {0, 3'000}).ok());
  EXPECT_EQ(ChooseJob(KnownJobs(jobs()), "", false)->id, "a");
  EXPECT_EQ(ChooseJob(KnownJobs(jobs()), "b", false)->id, "b");
  const auto none = ChooseJob(KnownJobs(jobs()), "c", false);
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("ended, exit code 0"));
}

TEST_F(KnownJobsTest, TellCommandsWhereARunningJobMeets) {
  const DetachedJob job = Make("a", 1'000);
  ASSERT_TRUE(KeepMeeting(job.directory, {"127.0.0.1:7", "", "on", "", "", ""}, "secret").ok());
  const auto with = [this](std::vector<std::string> words) {
    words.insert(words.begin(), "hlaunch");
    return absl::StrJoin(WithMeeting(words, KnownJobs(jobs())), " ");
  };
  const std::string place =
      absl::StrCat(" --rdzv-endpoint 127.0.0.1:7 --token-file ", job.directory, "/token --tls on");
  EXPECT_EQ(with({"why", "a", "--json"}), "hlaunch why a --json" + place);
  EXPECT_EQ(with({"why"}), "hlaunch why a" + place);
  EXPECT_EQ(with({"why", "b"}), "hlaunch why b");
  EXPECT_EQ(with({"why", "--help"}), "hlaunch why --help");
  EXPECT_EQ(with({"why", "a", "--rdzv-endpoint=n"}), "hlaunch why a --rdzv-endpoint=n");
  const auto with_node = [this](const std::vector<std::string>& words) {
    return absl::StrJoin(WithMeetingOfNode(words, KnownJobs(jobs())), " ");
  };
  EXPECT_EQ(with_node({"hlaunch", "drain", "node1"}), "hlaunch drain a node1" + place);
  EXPECT_EQ(with_node({"hlaunch", "drain", "a", "node1"}), "hlaunch drain a node1" + place);
  EXPECT_EQ(with_node({"hlaunch", "drain"}), "hlaunch drain");
  Make("b", 2'000);
  EXPECT_EQ(with({"why"}), "hlaunch why");
}

TEST_F(KnownJobsTest, MakesNoDirectoryOfARunningJobOrOutsideItsOwn) {
  const DetachedJob job = Make("a", 1'000);
  EXPECT_TRUE(absl::IsAlreadyExists(MakeJobDirectory(jobs(), "a").status()));
  ASSERT_TRUE(KeepEnding(job.directory, {0, 2'000}).ok());
  EXPECT_TRUE(MakeJobDirectory(jobs(), "a").ok());
  for (const char* id : {"", ".", "..", "../a", "a/b", "a b", "a\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MakeJobDirectory(jobs(), id).status())) << id;
  }
}

TEST_F(KnownJobsTest, KeepsTheLastThatHaveEndedAndAllThatRun) {
  Make("runs", 1);
  for (int n = 0; n < 25; ++n) {
    const DetachedJob job = Make(absl::StrCat("job", n), 1'000 + n);
    ASSERT_TRUE(KeepEnding(job.directory, {0, 2'000}).ok());
  }
  Make("last", 9'000);
  const std::vector<std::string> ids = Ids(KnownJobs(jobs()));
  EXPECT_EQ(ids.size(), kKeptJobs + 2);
  EXPECT_EQ(ids.front(), "last");
  EXPECT_EQ(ids[1], "job24");
  EXPECT_EQ(ids.back(), "runs");
}

}  // namespace
}  // namespace hlaunch
