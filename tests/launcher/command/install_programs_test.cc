// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/install_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// An installation of two programs in its own folder, and a folder `to` that does not exist.
class InstallProgramsTest : public testing::Test {
 protected:
  InstallProgramsTest() {
    fs::remove_all(folder_);
    Write("prefix/bin/hlaunch", "starter");
    Write("prefix/libexec/hlaunch/hlaunch-agent", "agent");
  }
  ~InstallProgramsTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    fs::permissions(folder_ / name, fs::perms(0755));
  }

  std::string Read(const std::string& path) {
    std::string text;
    std::getline(std::ifstream(path), text);
    return text;
  }

  const fs::path folder_ = absl::StrCat(testing::TempDir(), "/install_programs.", ::getpid());
  const std::string self_ = folder_ / "prefix/bin/hlaunch";
  const std::string to_ = folder_ / "a/to";
};

TEST_F(InstallProgramsTest, LinksLeadToTheProgram) {
  EXPECT_THAT(*InstallLinks(self_, to_), ElementsAre(to_ + "/torchrun", to_ + "/mpirun",
                                                     to_ + "/mpiexec", to_ + "/mpiexec.hydra"));
  EXPECT_EQ(fs::read_symlink(to_ + "/torchrun"), self_);
  EXPECT_TRUE(InstallLinks(self_, to_).ok());  // The link exists already.
}

TEST_F(InstallProgramsTest, ALinkLeavesAnothersProgramAlone) {
  Write("a/to/torchrun", "another's");
  const auto done = InstallLinks(self_, to_);
  EXPECT_EQ(done.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(done.status().message()), HasSubstr(to_ + "/torchrun"));
  EXPECT_EQ(Read(to_ + "/torchrun"), "another's");
}

TEST_F(InstallProgramsTest, CopiesRunFromOneFolder) {
  EXPECT_THAT(*InstallCopies(self_, to_), ElementsAre(to_ + "/hlaunch", to_ + "/hlaunch-agent"));
  EXPECT_EQ(Read(to_ + "/hlaunch"), "starter");
  EXPECT_EQ(Read(to_ + "/hlaunch-agent"), "agent");
  EXPECT_EQ(::access((to_ + "/hlaunch-agent").c_str(), X_OK), 0);
}

TEST_F(InstallProgramsTest, CopiesReplaceOlderOnesAndLeaveNoDraft) {
  Write("a/to/hlaunch", "older");
  ASSERT_TRUE(InstallCopies(self_, to_).ok());
  EXPECT_EQ(Read(to_ + "/hlaunch"), "starter");
  EXPECT_EQ(std::distance(fs::directory_iterator(to_), fs::directory_iterator()), 2);
}

TEST_F(InstallProgramsTest, SayWhatIsMissingAndWhatCannotBeWritten) {
  EXPECT_THAT(std::string(InstallLinks(self_, "/proc/no").status().message()),
              HasSubstr("cannot make the folder /proc/no"));
  fs::remove(folder_ / "prefix/libexec/hlaunch/hlaunch-agent");
  EXPECT_THAT(std::string(InstallCopies(self_, to_).status().message()),
              HasSubstr("there is no program hlaunch-agent beside " + self_));
}

}  // namespace
}  // namespace hlaunch
