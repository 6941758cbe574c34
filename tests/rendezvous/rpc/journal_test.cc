// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/journal.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/rpc/journal_format.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using Step = Journal::Step;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// A record with a value in every field.
JobRecord Record(const std::string& job_id, Round round) {
  JobRecord record;
  record.job_id = job_id;
  record.policy = Policy(2, 4, 5);
  record.policy.spares = 1;
  record.policy.last_call = std::chrono::milliseconds(1500);
  record.state = JobState::kStopping;
  record.round = round;
  record.restarts = 2;
  for (int i = 0; i < 3; ++i) {
    MemberRecord member;
    member.info = Node(i, 2, 4);
    member.info.job_id = job_id;
    if (i == 1) member.info.node_rank = 1;
    member.told = round;
    member.node_rank = i;
    member.first_rank = 2 * i;
    member.succeeded = i == 0;
    member.stopped = i == 2;
    record.members.push_back(member);
  }
  record.ghosts = {{"id9", 99, "node9", 909, {}}};
  record.given_up = {51, 52};
  record.held_ranks = {{"id0", 0}, {"id1", 1}, {"id2", 2}};
  record.round_nodes = 3;
  record.succeeded = 1;
  record.stopped = 1;
  record.world_size = 6;
  record.master_addr = "10.0.0.1";
  record.master_port = 4000;
  record.coordinator_port = 4001;
  record.worker_store = true;
  record.cause = "rank 3 on node1 exited with 7";
  record.failures = {Failure(3, 7)};
  record.total_failures = 1;
  record.history = {{1, "rank 1 on node0 exited with 3", Failure(1, 3)}, {2, "node1 left", {}}};
  record.outcome.exit_code = 7;
  record.outcome.reason = "no restart is left";
  record.outcome.failures = {Failure(3, 7)};
  return record;
}

// The whole record as text, for comparisons.
std::string Text(const JobRecord& record) { return EncodeRecord(record); }

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string path = testing::TempDir() + "/hlaunch-journal-XXXXXX";
    directory_ = std::string(::mkdtemp(path.data())) + "/state";
  }
  ~JournalTest() override { fs::remove_all(fs::path(directory_).parent_path()); }

  std::unique_ptr<Journal> Open(std::function<absl::Status(Step, const std::string&)> hook = {}) {
    auto journal = Journal::Open({directory_, std::move(hook)});
    versions_.clear();
    EXPECT_TRUE(journal.ok()) << journal.status();
    return std::move(journal).value();
  }
  // Replaces the record that this test kept last for the job.
  absl::Status Keep(Journal& journal, const JobRecord& record) {
    RecordVersion& version = versions_[record.job_id];
    const auto kept = journal.Keep(record, version);
    if (kept.ok()) version = *kept;
    return kept.status();
  }
  RecordKeeper::Listed Load() {
    auto loaded = Open()->List();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return std::move(loaded).value();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename() != "lock") names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
  }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << content;
  }

  std::string directory_;
  std::map<std::string, RecordVersion> versions_;  // Versions kept since the last Open.
};

TEST_F(JournalTest, KeepsEveryFieldOfEveryJob) {
  {
    const auto journal = Open();
    ASSERT_TRUE(Keep(*journal, Record("a", 3)).ok());
    ASSERT_TRUE(Keep(*journal, Record("a", 4)).ok());
    ASSERT_TRUE(Keep(*journal, Record("b/../c", 1)).ok());
  }
  EXPECT_THAT(Files(), ElementsAre("a.job", "b%2f..%2fc.job"));
  const RecordKeeper::Listed loaded = Load();
  EXPECT_THAT(loaded.warnings, IsEmpty());
  ASSERT_THAT(loaded.records, SizeIs(2));
  EXPECT_EQ(Text(loaded.records[0].record), Text(Record("a", 4)));
  EXPECT_EQ(Text(loaded.records[1].record), Text(Record("b/../c", 1)));
  // Check fields as well as the encoding.
  EXPECT_EQ(loaded.records[0].record.members[1].info.node_rank, 1);
  EXPECT_EQ(loaded.records[0].record.members[1].info.route_address, "10.0.0.100");
  EXPECT_EQ(loaded.records[0].record.policy.last_call, std::chrono::milliseconds(1500));
  EXPECT_THAT(loaded.records[0].record.given_up, ElementsAre(51, 52));
  EXPECT_EQ(loaded.records[0].record.coordinator_port, 4001);
  EXPECT_TRUE(loaded.records[0].record.worker_store);
  EXPECT_THAT(loaded.records[0].record.held_ranks,
              ElementsAre(Pair("id0", 0), Pair("id1", 1), Pair("id2", 2)));
}

TEST_F(JournalTest, ForgetsAJobThatIsOverAndHasNobodyLeft) {
  const auto journal = Open();
  JobRecord record = Record("a", 3);
  ASSERT_TRUE(Keep(*journal, record).ok());
  record.state = JobState::kOver;
  ASSERT_TRUE(Keep(*journal, record).ok());
  EXPECT_THAT(Files(), ElementsAre("a.job"));
  record.members.clear();
  ASSERT_TRUE(Keep(*journal, record).ok());
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(Keep(*journal, record).ok());  // Keeping it again does no harm.
}

TEST_F(JournalTest, MakesTheDirectoryForThisUserAlone) {
  Open();
  struct stat status = {};
  ASSERT_EQ(::stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(JournalTest, OnlyOneServiceKeepsItsJobsThere) {
  {
    const auto first = Open();
    const auto second = Journal::Open({directory_, {}});
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr(absl::StrCat("(pid ", ::getpid(), ") keeps its jobs in ", directory_)));
  }
  EXPECT_TRUE(Journal::Open({directory_, {}}).ok());
}

TEST_F(JournalTest, ADirectoryThatCannotBeUsedIsNamed) {
  EXPECT_THAT(std::string(Journal::Open({"/dev/null/x", {}}).status().message()),
              HasSubstr("/dev/null/x"));
  EXPECT_THAT(std::string(Journal::Open({"/dev/null", {}}).status().message()),
              HasSubstr("/dev/null: Not a directory"));
}

// What a power cut at `step` may leave of a Keep: before the fsync any part of the new file or none
// of it; before the directory's fsync the old name or the new one.
TEST_F(JournalTest, AtAnyPointEitherTheOldRecordIsThereOrTheNew) {
  std::minstd_rand random(1);
  for (const Step step :
       {Step::kOpen, Step::kWrite, Step::kSync, Step::kRename, Step::kSyncDirectory}) {
    for (const bool fresh : {false, true}) {
      for (int torn = 0; torn < 8; ++torn) {
        fs::remove_all(directory_);
        bool armed = false;
        const auto journal = Open([&](Step at, const std::string&) {
          return armed && at == step ? absl::AbortedError("the power went") : absl::OkStatus();
        });
        if (!fresh) {
          ASSERT_TRUE(Keep(*journal, Record("a", 3)).ok());
        }
        armed = true;
        EXPECT_EQ(Keep(*journal, Record("a", 4)).code(), absl::StatusCode::kAborted);
        const std::string temporary = directory_ + "/a.job.tmp";
        if (step <= Step::kSync && fs::exists(temporary)) {
          fs::resize_file(temporary, random() % (fs::file_size(temporary) + 1));
        }
        const auto again = Journal::Open({directory_ + "/../copy", {}});  // The lock is held.
        fs::copy(directory_, directory_ + "/../copy",
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing);
        const auto loaded = (*again)->List();
        ASSERT_TRUE(loaded.ok());
        EXPECT_THAT(loaded->warnings, IsEmpty());
        if (step == Step::kSyncDirectory) {
          ASSERT_THAT(loaded->records, SizeIs(1));
          EXPECT_EQ(loaded->records[0].record.round, 4);
        } else if (fresh) {
          EXPECT_THAT(loaded->records, IsEmpty());
        } else {
          ASSERT_THAT(loaded->records, SizeIs(1));
          EXPECT_EQ(Text(loaded->records[0].record), Text(Record("a", 3)));
        }
        EXPECT_FALSE(fs::exists(directory_ + "/../copy/a.job.tmp"));
        fs::remove_all(directory_ + "/../copy");
        armed = false;  // The failure does not repeat.
        EXPECT_TRUE(Keep(*journal, Record("a", 5)).ok());
      }
    }
  }
  EXPECT_EQ(Load().records[0].record.round, 5);
}

TEST_F(JournalTest, StepsComeInTheOrderThatPowerCutsNeed) {
  std::vector<Step> steps;
  const auto journal = Open([&](Step step, const std::string&) {
    steps.push_back(step);
    return absl::OkStatus();
  });
  JobRecord record = Record("a", 3);
  ASSERT_TRUE(Keep(*journal, record).ok());
  EXPECT_THAT(steps, ElementsAre(Step::kOpen, Step::kWrite, Step::kSync, Step::kRename,
                                 Step::kSyncDirectory));
  steps.clear();
  record.state = JobState::kOver;
  record.members.clear();
  ASSERT_TRUE(Keep(*journal, record).ok());
  EXPECT_THAT(steps, ElementsAre(Step::kRemove, Step::kSyncDirectory));
}

TEST_F(JournalTest, MovesADamagedFileAsideAndGoesOn) {
  Keep(*Open(), Record("good", 1)).IgnoreError();
  const std::string good = EncodeRecord(Record("bad", 1));
  std::minstd_rand random(2);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    if (i % 2 == 0) {
      bad.resize(random() % good.size());
    } else {
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    }
    Write("bad.job", bad);
    const RecordKeeper::Listed loaded = Load();
    ASSERT_THAT(loaded.records, SizeIs(1)) << i;
    EXPECT_EQ(loaded.records[0].record.job_id, "good");
    EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("bad.job is damaged")));
    ASSERT_THAT(Files(), ElementsAre("bad.job.corrupt", "good.job"));
    EXPECT_EQ(Read("bad.job.corrupt"), bad);
  }
}

TEST_F(JournalTest, AForeignFileIsNoRecord) {
  Open();
  Write("a.job", "#!/bin/sh\necho hello\n");
  Write("b.job", "");
  Write("c.job", EncodeRecord(Record("d", 1)));  // A copy under the wrong name.
  Write("notes.txt", "mine");
  const RecordKeeper::Listed loaded = Load();
  EXPECT_THAT(loaded.records, IsEmpty());
  EXPECT_THAT(loaded.warnings, SizeIs(3));
  EXPECT_THAT(Files(), ElementsAre("a.job.corrupt", "b.job.corrupt", "c.job.corrupt", "notes.txt"));
}

TEST_F(JournalTest, AFileOfANewerVersionIsLeftAlone) {
  Open();
  // Format 2, with the checksum that every format has: crc32("2 3\nabc").
  Write("a.job", "hlaunch-job 2 e665d4d1 3\nabc");
  const auto loaded = Open()->List();
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition) << loaded.status();
  EXPECT_THAT(std::string(loaded.status().message()),
              testing::AllOf(HasSubstr("a.job: it has format 2"), HasSubstr("move the file away")));
  EXPECT_THAT(Files(), ElementsAre("a.job"));
}

TEST(RecordFileName, IsSafeAndDistinctForAnyJobId) {
  EXPECT_EQ(RecordFileName("train-17_b.2"), "train-17_b.2.job");
  EXPECT_EQ(RecordFileName(".."), "%2e..job");
  EXPECT_EQ(RecordFileName("a/b c%"), "a%2fb%20c%25.job");
  EXPECT_NE(RecordFileName("a%2fb"), RecordFileName("a/b"));
  const std::string x(256, '/'), y = x.substr(1) + "x";
  for (const std::string& id : {x, y}) EXPECT_LE(RecordFileName(id).size(), 251u);
  EXPECT_NE(RecordFileName(x), RecordFileName(y));
}

}  // namespace
}  // namespace hlaunch
