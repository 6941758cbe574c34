// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/user_file.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "gtest/gtest.h"
#include "launcher/cluster/tasks/part_folder.h"
#include "launcher/cluster/tasks/parts.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

class UserFileTest : public ::testing::Test {
 protected:
  UserFileTest() {
    char name[] = "/tmp/user-file-XXXXXX";
    path_ = ::mkdtemp(name);
    folder_ = OpenFolder(path_).value();
  }
  ~UserFileTest() override { fs::remove_all(path_); }

  void Write(const char* name) { std::ofstream(path_ / name) << "x"; }

  fs::path path_;
  UniqueFd folder_;
};

TEST_F(UserFileTest, RemovesAFolderWithoutLeavingIt) {
  fs::create_directories(path_ / "part/job/deep/deeper");
  fs::create_directories(path_ / "other");
  Write("other/file");
  Write("part/job/deep/file");
  fs::create_symlink(path_ / "other", path_ / "part/job/link");
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 100), Removed::kAll);
  EXPECT_FALSE(fs::exists(path_ / "part"));
  EXPECT_TRUE(fs::exists(path_ / "other/file"));
}

TEST_F(UserFileTest, RemovesALargeFolderPieceByPiece) {
  fs::create_directories(path_ / "part");
  for (int i = 0; i < 250; ++i) std::ofstream(path_ / "part" / absl::StrCat(i));
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 100), Removed::kMore);
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 100), Removed::kMore);
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 100), Removed::kAll);
  EXPECT_FALSE(fs::exists(path_ / "part"));
}

TEST_F(UserFileTest, WhatIsBeingRemovedIsNoLongerItsUsers) {
  fs::create_directories(path_ / "part/job");
  for (int i = 0; i < 10; ++i) std::ofstream(path_ / "part/job" / absl::StrCat(i));
  fs::permissions(path_ / "part/job", fs::perms::all);
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 5), Removed::kMore);
  EXPECT_EQ(fs::status(path_ / "part/job").permissions(), fs::perms::owner_all);
}

TEST_F(UserFileTest, RemovesWhatIsDeeperThanItGoes) {
  fs::path deep = path_ / "gone-part";
  for (int i = 0; i < 300; ++i) deep /= "d";
  fs::create_directories(deep);
  const PartFolders folders(path_);
  // Each turn removes what it can, or moves it to the top.
  for (int turns = 0; turns < 30 && !folders.AllSetAside().empty(); ++turns) {
    for (const std::string& name : folders.AllSetAside()) folders.RemoveSome(name, 1000);
  }
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(UserFileTest, EntersNoFileSystemThatIsMountedThere) {
  fs::create_directories(path_ / "part/job");
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", (path_ / "part/job").c_str(), "tmpfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "may not mount";
  }
  Write("part/job/file");
  const UniqueFd part = OpenFolder(path_ / "part").value();
  EXPECT_FALSE(OpenFolderIn(part.get(), "job").ok());
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 100), Removed::kNot);
  EXPECT_TRUE(fs::exists(path_ / "part/job/file"));
  ASSERT_EQ(::umount((path_ / "part/job").c_str()), 0);
  EXPECT_TRUE(OpenFolderIn(part.get(), "job").ok());
  EXPECT_EQ(RemoveSome(folder_.get(), "part", 100), Removed::kAll);
}

TEST_F(UserFileTest, SetsAPartAsideAndFindsItAgain) {
  const PartFolders folders(path_);
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(folders.Make(7).ok());
    EXPECT_TRUE(folders.SetAside(7));
    EXPECT_TRUE(folders.All().empty());
  }
  EXPECT_EQ(folders.AllSetAside().size(), 2u);
  EXPECT_FALSE(folders.SetAside(7));
  EXPECT_FALSE(folders.SetAsidePrivate(7));
}

TEST_F(UserFileTest, APartWhoseFoldersCannotBeMadeLeavesNothing) {
  // The path of the part's own folder is just short enough.
  std::string path = path_;
  while (path.size() < PATH_MAX - 6) path += "/";
  const PartFolders folders(path);
  EXPECT_TRUE(absl::IsResourceExhausted(folders.Make(7)));
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(UserFileTest, APartIsMadeWhereADaemonWasKilledBeforeItsRecord) {
  ASSERT_TRUE(PartFolders(path_).Make(7).ok());
  asio::io_context loop;
  Parts::Settings settings;
  settings.folder = path_;
  Parts parts(loop, settings, [](const PartTold&) {});
  ASSERT_TRUE(parts.Open().ok());
  EXPECT_TRUE(PartFolders(path_).Make(7).ok());
}

TEST_F(UserFileTest, APartWhoseRecordCannotBeReadIsLeftAlone) {
  ASSERT_TRUE(PartFolders(path_).Make(7).ok());
  Write("7/part.json");
  asio::io_context loop;
  Parts::Settings settings;
  settings.folder = path_;
  Parts parts(loop, settings, [](const PartTold&) {});
  ASSERT_TRUE(parts.Open().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(PartFolders(path_).Make(7)));
}

}  // namespace
}  // namespace hlaunch
