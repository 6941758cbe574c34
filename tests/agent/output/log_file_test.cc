// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "agent/output/log_directory.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Each test has its own directory.
class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    std::string path = ::testing::TempDir() + "/logs-XXXXXX";
    root_ = ::mkdtemp(path.data());
  }
  ~LogTest() override { std::filesystem::remove_all(root_); }

  LogFile Make(const std::string& name, Rotation rotation = {}) {
    return LogFile(root_ + "/" + name, rotation, losses_);
  }
  std::string Read(const std::string& name) const { return Content(root_ + "/" + name); }
  bool Exists(const std::string& name) const { return std::filesystem::exists(root_ + "/" + name); }

  std::string root_;
  std::shared_ptr<LogLosses> losses_ = std::make_shared<LogLosses>();
};

using LogFileTest = LogTest;
using RoundLogsTest = LogTest;

TEST_F(LogFileTest, TakesAnyByte) {
  LogFile file = Make("a.log");
  EXPECT_TRUE(Exists("a.log")) << "also when nothing is written";
  file.Write(absl::string_view("a\0\xff\n", 4));
  file.Write("b");
  EXPECT_EQ(Read("a.log"), std::string("a\0\xff\nb", 5));
  EXPECT_EQ(losses_->Summary(), "");
}

TEST_F(LogFileTest, NeverWritesThroughALinkOrIntoAFileThatWasThere) {
  std::ofstream(root_ + "/victim") << "mine";
  std::filesystem::create_symlink("victim", root_ + "/a.log");
  Make("a.log").Write("theirs\n");
  Make("victim").Write("theirs\n");
  EXPECT_EQ(Read("victim"), "mine");
  EXPECT_THAT(losses_->Summary(), HasSubstr("14 bytes"));
}

TEST_F(LogFileTest, RotatesBetweenLines) {
  LogFile file = Make("a.log", {10, 2});
  file.Write("1234\n5678\nabcd\nefgh\n");
  file.Write("ijkl\n");
  EXPECT_EQ(Read("a.log"), "ijkl\n");
  EXPECT_EQ(Read("a.log.1"), "abcd\nefgh\n");
  EXPECT_EQ(Read("a.log.2"), "1234\n5678\n");
  file.Write("mnop\nqrst\n");
  EXPECT_EQ(Read("a.log.2"), "abcd\nefgh\n");
  EXPECT_FALSE(Exists("a.log.3"));
}

TEST_F(LogFileTest, KeepsALineThatIsLongerThanTheLimit) {
  LogFile file = Make("a.log", {10, 3});
  file.Write("12\n");
  file.Write("0123456789abcdef");
  file.Write("ghi\n34\n");
  EXPECT_EQ(Read("a.log.2"), "12\n");
  EXPECT_EQ(Read("a.log.1"), "0123456789abcdefghi\n");
  EXPECT_EQ(Read("a.log"), "34\n");
}

TEST_F(LogFileTest, KeepsNoneAsideIfNoneIsWanted) {
  LogFile file = Make("a.log", {5, 0});
  file.Write("1234\n5678\n");
  EXPECT_EQ(Read("a.log"), "5678\n");
  EXPECT_FALSE(Exists("a.log.0"));
  EXPECT_FALSE(Exists("a.log.1"));
}

TEST_F(LogFileTest, MakesItsDirectoryAgain) {
  LogFile file = Make("gone/a.log", {5, 1});
  std::filesystem::remove_all(root_ + "/gone");
  file.Write("1234\n5678\n");
  EXPECT_EQ(Read("gone/a.log"), "5678\n");
}

TEST_F(LogFileTest, GoesOnOnceItCanBeMovedAsideAgain) {
  LogFile file = Make("a.log", {100, 1});
  std::filesystem::create_directory(root_ + "/a.log.1");
  const std::string full = std::string(99, 'x') + "\n";
  file.Write(full);
  file.Write("lost\n");
  std::filesystem::remove(root_ + "/a.log.1");
  file.Write("again\n");
  EXPECT_EQ(Read("a.log.1"), full);
  EXPECT_EQ(Read("a.log"), "[hlaunch: 5 bytes are missing here: Is a directory]\nagain\n");
}

// RLIMIT_FSIZE stands for a full disk: write accepts what fits, then nothing, then everything
// again.
TEST_F(LogFileTest, GoesOnWhereADiskWasFull) {
  LogFile file = Make("a.log");
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {16, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  file.Write("0123456789\n");
  file.Write("0123456789\n");
  file.Write("lost\n");
  ::setrlimit(RLIMIT_FSIZE, &before);
  file.Write("again\n");
  EXPECT_EQ(Read("a.log"),
            "0123456789\n01234\n[hlaunch: 11 bytes are missing here: File too large]\nagain\n");
  EXPECT_EQ(losses_->Summary(),
            absl::StrCat("log files lack 11 bytes of the workers' output, first ", root_,
                         "/a.log: File too large"));
}

// --- The layout ----------------------------------------------------------------------------------

LogSpec Spec(const std::string& directory, Streams redirects, Streams tee = Streams::kNone) {
  LogSpec spec;
  spec.directory = directory;
  spec.redirects.others = redirects;
  spec.tee.others = tee;
  return spec;
}

Assignment Four() {
  Assignment assignment;
  assignment.round = 7;
  assignment.first_rank = 4;
  assignment.world_size = 8;
  return assignment;
}

TEST_F(RoundLogsTest, LaysFilesOutAsTorchrun) {
  LogSpec spec = Spec(root_ + "/new/logs", Streams::kNone);
  spec.redirects.ranks = {{0, Streams::kOut}, {12, Streams::kBoth}};
  spec.tee.ranks = {{1, Streams::kErr}};
  const auto directory = LogDirectory::Make(spec, "job").value();
  const std::string job = directory->logs().directory;
  EXPECT_EQ(job.substr(0, root_.size() + 14), root_ + "/new/logs/job_");
  RoundLogs logs(directory->logs(), Four(), "default", 13);
  for (int local_rank = 0; local_rank < 13; ++local_rank) logs.Routes(local_rank);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(job)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string().substr(job.size()));
  }
  EXPECT_THAT(files, ::testing::UnorderedElementsAre(
                         "/attempt_0/0/stdout.log", "/attempt_0/1/stderr.log",
                         "/attempt_0/12/stdout.log", "/attempt_0/12/stderr.log"));
  EXPECT_EQ(logs.ErrorFile(12), job + "/attempt_0/12/error.json");
  EXPECT_EQ(logs.WorkerDirectory(3), job + "/attempt_0/3");
  EXPECT_TRUE(std::filesystem::is_directory(logs.WorkerDirectory(3)));
}

TEST_F(RoundLogsTest, SendsStreamsWhereTheyBelong) {
  LogSpec spec = Spec(root_, Streams::kBoth);
  spec.tee.ranks = {{1, Streams::kErr}, {2, Streams::kErr}};
  spec.shown_ranks = {0, 1};
  const auto directory = LogDirectory::Make(spec, "job").value();
  RoundLogs logs(directory->logs(), Four(), "default", 3);
  const WorkerRoutes zero = logs.Routes(0);
  EXPECT_EQ(zero.prefix, "[4] ");
  EXPECT_FALSE(zero.out.console);
  EXPECT_NE(zero.out.file, nullptr);
  const WorkerRoutes one = logs.Routes(1);
  EXPECT_FALSE(one.out.console);
  EXPECT_TRUE(one.err.console) << "tee wins";
  EXPECT_NE(one.err.file, nullptr);
  const WorkerRoutes two = logs.Routes(2);
  EXPECT_FALSE(two.err.console) << "not shown";
  EXPECT_NE(two.err.file, nullptr) << "files are as without the filter";
}

TEST_F(RoundLogsTest, LeavesAnEarlierRoundOfTheSameAttemptAlone) {
  const auto directory = LogDirectory::Make(Spec(root_, Streams::kOut), "job").value();
  RoundLogs first(directory->logs(), Four(), "default", 1);
  first.Routes(0).out.file->Write("first\n");
  Assignment again = Four();
  again.round = 8;
  RoundLogs second(directory->logs(), again, "default", 1);
  second.Routes(0).out.file->Write("second\n");
  EXPECT_EQ(Content(first.WorkerDirectory(0) + "/stdout.log"), "first\n");
  EXPECT_THAT(second.WorkerDirectory(0), HasSubstr("/attempt_0_round_8/0"));
  EXPECT_EQ(Content(second.WorkerDirectory(0) + "/stdout.log"), "second\n");
}

TEST_F(RoundLogsTest, WritesNothingWhereSomebodyHasReplacedTheJobsDirectory) {
  const std::string theirs = root_ + "/theirs";
  for (const bool link : {true, false}) {
    const auto directory = LogDirectory::Make(Spec(root_, Streams::kOut), "job").value();
    const std::string path = directory->logs().directory;
    std::filesystem::create_directory(theirs);
    std::filesystem::rename(path, path + ".away");
    link ? std::filesystem::create_symlink(theirs, path) : std::filesystem::rename(theirs, path);
    RoundLogs logs(directory->logs(), Four(), "default", 1);
    EXPECT_EQ(logs.Routes(0).out.file, nullptr);
    EXPECT_EQ(logs.ErrorFile(0), "");
    EXPECT_TRUE(std::filesystem::is_empty(link ? theirs : path));
  }
}

TEST_F(RoundLogsTest, MakesADirectoryAgainThatIsGoneAndKeepsOthersOut) {
  const auto directory = LogDirectory::Make(Spec(root_, Streams::kOut), "job").value();
  const std::string path = directory->logs().directory;
  for (int round = 7; round < 9; ++round) {
    std::filesystem::remove_all(path);
    RoundLogs logs(directory->logs(), Four(), "default", 1);
    logs.Routes(0).out.file->Write("line\n");
    EXPECT_EQ(Content(path + "/attempt_0/0/stdout.log"), "line\n");
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  }
}

TEST_F(RoundLogsTest, RefusesADirectoryThatCannotBeLookedAt) {
  std::filesystem::create_symlink("loop", root_ + "/loop");
  for (const std::string& path : {root_ + "/" + std::string(300, 'x'), root_ + "/loop/logs"}) {
    const auto directory = LogDirectory::Make(Spec(path, Streams::kOut), "job");
    EXPECT_TRUE(absl::IsFailedPrecondition(directory.status())) << directory.status();
    EXPECT_THAT(std::string(directory.status().message()), HasSubstr("; see --log-dir"));
  }
}

TEST_F(RoundLogsTest, MakesNoFilesForDevNull) {
  const auto directory = LogDirectory::Make(Spec("/dev/null", Streams::kBoth), "job").value();
  EXPECT_EQ(directory->logs().directory, "");
  RoundLogs logs(directory->logs(), Four(), "default", 1);
  EXPECT_EQ(logs.ErrorFile(0), "");
  EXPECT_EQ(logs.WorkerDirectory(0), "");
  EXPECT_TRUE(logs.Routes(0).out.console);
}

TEST_F(RoundLogsTest, KeepsErrorFilesToItselfIfNoFilesAreWanted) {
  auto directory = LogDirectory::Make(Spec("", Streams::kNone), "job").value();
  const std::string path = directory->logs().directory;
  RoundLogs logs(directory->logs(), Four(), "default", 1);
  EXPECT_EQ(logs.ErrorFile(0), path + "/error_7_0.json");
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    EXPECT_FALSE(entry.is_directory()) << entry.path() << ": neither round nor worker costs one";
  }
  EXPECT_EQ(logs.WorkerDirectory(0), "") << "it will be gone";
  directory.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(RoundLogsTest, StaysInTheLogDirectoryWhateverTheJobIsCalled) {
  for (const char* name : {"../../etc/x", "a/b", "..", ".", "", "new\nline"}) {
    const auto directory = LogDirectory::Make(Spec(root_, Streams::kOut), name).value();
    const std::filesystem::path path = directory->logs().directory;
    EXPECT_EQ(path.parent_path(), root_) << name;
    EXPECT_EQ(path.string().find('\n'), std::string::npos);
    EXPECT_EQ(path.lexically_normal(), path) << name;
    EXPECT_TRUE(std::filesystem::is_directory(path));
  }
  EXPECT_TRUE(LogDirectory::Make(Spec(root_, Streams::kOut), std::string(5000, 'x')).ok());
}

TEST_F(RoundLogsTest, LetsOnlyTheOwnerIn) {
  const auto directory = LogDirectory::Make(Spec(root_, Streams::kOut), "job").value();
  struct stat st = {};
  ASSERT_EQ(::stat(directory->logs().directory.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST_F(RoundLogsTest, RefusesADirectoryThatCannotBe) {
  std::ofstream(root_ + "/file") << "x";
  for (const std::string& name : {root_ + "/file", root_ + "/file/below", std::string("/proc/x")}) {
    const auto directory = LogDirectory::Make(Spec(name, Streams::kOut), "job");
    ASSERT_FALSE(directory.ok()) << name;
    EXPECT_EQ(directory.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(directory.status().message()), HasSubstr(name));
  }
}

}  // namespace
}  // namespace hlaunch
