// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/agent_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryDirectory, IsSeenFromTheRoot) {
  const char* before = ::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", ".", 1);
  const fs::path seen = TemporaryDirectory();
  ::setenv("TMPDIR", "/no such directory", 1);
  EXPECT_EQ(TemporaryDirectory(), "/tmp");
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  EXPECT_TRUE(seen.is_absolute()) << seen;
  EXPECT_TRUE(fs::equivalent(seen, "."));
}

class AgentDirectoryTest : public ::testing::Test {
 protected:
  AgentDirectoryTest() {
    std::string path = ::testing::TempDir() + "/agent-directory-XXXXXX";
    root_ = ::mkdtemp(path.data());
  }
  ~AgentDirectoryTest() override { fs::remove_all(root_); }

  static void Write(const std::string& path) { std::ofstream(path) << "precious"; }

  // A directory left by an agent that was killed with its keeper.
  std::string LeftBehind() const {
    if (const pid_t child = ::fork(); child != 0) {
      ::waitpid(child, nullptr, 0);
      for (const auto& entry : fs::directory_iterator(root_)) return entry.path().string();
      return "";
    }
    auto directory = AgentDirectory::Make(root_);
    fs::create_directories((*directory)->path() + "/attempt_0/0");
    Write((*directory)->path() + "/attempt_0/0/error.json");
    ::_exit(0);
  }

  // A directory that looks like an agent's, except for what a test takes away.
  std::string Imitation(const std::string& name = "hlaunch-agent.abcdef") const {
    const std::string path = absl::StrCat(root_, "/", name);
    fs::create_directory(path);
    ::chmod(path.c_str(), 0700);
    Write(path + "/lock");
    ::chmod((path + "/lock").c_str(), 0600);
    return path;
  }

  std::string root_;
};

TEST_F(AgentDirectoryTest, IsOfItsOwnerAloneAndGoesWithTheObject) {
  auto directory = AgentDirectory::Make(root_).value();
  struct stat st = {};
  ASSERT_EQ(::stat(directory->path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
  directory.reset();
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(AgentDirectoryTest, GoesWithTheObjectWhateverItHolds) {
  auto directory = AgentDirectory::Make(root_).value();
  fs::create_directories(directory->path() + "/a/b");
  Write(directory->path() + "/a/c");
  directory.reset();
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(AgentDirectoryTest, AnotherAgentRemovesWhatAnAgentThatIsGoneLeft) {
  const std::string left = LeftBehind();
  ASSERT_TRUE(fs::exists(left + "/attempt_0/0/error.json"));
  const auto other = AgentDirectory::Make(root_).value();
  EXPECT_TRUE(fs::exists(left)) << "a start does not look for it";
  RemoveAbandonedDirectories(root_);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other->path()));
}

TEST_F(AgentDirectoryTest, LeavesALivingAgentsAlone) {
  const auto first = AgentDirectory::Make(root_).value();
  const auto second = AgentDirectory::Make(root_).value();
  RemoveAbandonedDirectories(root_);
  EXPECT_TRUE(fs::exists(first->path()));
  EXPECT_TRUE(fs::exists(second->path()));
}

TEST_F(AgentDirectoryTest, RemovesAnImitation) {  // Otherwise the next test proves nothing.
  const std::string path = Imitation();
  RemoveAbandonedDirectories(root_);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(AgentDirectoryTest, LeavesAloneWhatIsNotOurs) {
  const std::string of_a_user = Imitation("hlaunch-agent.backup-of-mine");
  const std::string of_a_log = Imitation("hlaunch-agent_abcdef");
  const std::string open_to_others = Imitation("hlaunch-agent.aaaaaa");
  ::chmod(open_to_others.c_str(), 0755);
  const std::string without_lock = Imitation("hlaunch-agent.bbbbbb");
  fs::remove(without_lock + "/lock");
  const std::string lock_is_a_link = Imitation("hlaunch-agent.cccccc");
  fs::rename(lock_is_a_link + "/lock", root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", lock_is_a_link + "/lock");
  const std::string lock_is_a_pipe = Imitation("hlaunch-agent.dddddd");
  fs::remove(lock_is_a_pipe + "/lock");
  ASSERT_EQ(::mkfifo((lock_is_a_pipe + "/lock").c_str(), 0600), 0);
  const std::string file = root_ + "/hlaunch-agent.eeeeee";
  Write(file);
  const std::string link = root_ + "/hlaunch-agent.ffffff";
  fs::create_directory_symlink(Imitation("target"), link);
  RemoveAbandonedDirectories(root_);
  for (const std::string& path : {of_a_user, of_a_log, open_to_others, without_lock, lock_is_a_link,
                                  lock_is_a_pipe, file, link, root_ + "/target/lock"}) {
    EXPECT_TRUE(fs::exists(path)) << path;
  }
}

TEST_F(AgentDirectoryTest, LeavesAloneWhatIsAnotherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make it";
  const std::string path = Imitation();
  ASSERT_EQ(::chown(path.c_str(), 65532, 65532), 0);
  RemoveAbandonedDirectories(root_);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(AgentDirectoryTest, FollowsNoLinkThatLiesWithin) {
  const std::string outside = root_ + "/outside";
  fs::create_directory(outside);
  Write(outside + "/file");
  const std::string path = Imitation();
  fs::create_directory_symlink(outside, path + "/attempt_0");
  RemoveAbandonedDirectories(root_);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(outside + "/file"));
}

TEST_F(AgentDirectoryTest, SaysWhyItCannotBeMade) {
  const auto directory = AgentDirectory::Make(root_ + "/nowhere");
  EXPECT_EQ(directory.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(directory.status().message(), "No such file or directory");
}

}  // namespace
}  // namespace hlaunch
