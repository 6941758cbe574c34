// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/membership/trust_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/rendezvous/certificate_time.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class TrustFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = absl::StrCat(testing::TempDir(), "trust.XXXXXX");
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
    folder_.emplace(*TrustFolder::Open(path_));
  }
  void TearDown() override { fs::remove_all(path_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  // A host's identity whose parts match.
  static HostIdentity Identity() {
    const Authority authority = *MakeAuthority(kNow);
    const HostRequest request = *MakeHostRequest("node1");
    return {authority.certificate,
            *SignHostRequest(authority, request.request, "node1", kNow, kNow + 60), request.key};
  }

  std::string path_;
  std::optional<TrustFolder> folder_;
};

TEST_F(TrustFolderTest, KeepsFilesForTheOwnerAlone) {
  ::umask(0);
  ASSERT_TRUE(folder_->Replace("a", "one").ok());
  ASSERT_TRUE(folder_->Replace("a", "two").ok());
  EXPECT_EQ(*folder_->Read("a"), "two");
  struct stat facts = {};
  ASSERT_EQ(::stat((path_ + "/a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_THAT(Files(), UnorderedElementsAre("a"));
}

TEST_F(TrustFolderTest, ReplacesWhatOneWhoWasKilledHasLeft) {
  std::ofstream(path_ + "/.a.draft") << "half";
  ASSERT_TRUE(folder_->Replace("a", "whole").ok());
  EXPECT_EQ(*folder_->Read("a"), "whole");
  EXPECT_THAT(Files(), UnorderedElementsAre("a"));
}

TEST_F(TrustFolderTest, FollowsNoLink) {
  const std::string outside = path_ + ".outside";
  std::ofstream(outside) << "of somebody else";
  fs::create_symlink(outside, path_ + "/a");
  EXPECT_EQ(folder_->Read("a").status().code(), absl::StatusCode::kFailedPrecondition);
  fs::create_symlink(outside, path_ + "/.a.draft");
  ASSERT_TRUE(folder_->Replace("a", "ours").ok());
  EXPECT_FALSE(fs::is_symlink(path_ + "/a"));
  std::string text;
  std::getline(std::ifstream(outside), text);
  EXPECT_EQ(text, "of somebody else");
  fs::create_directory_symlink(path_, path_ + ".link");
  EXPECT_EQ(TrustFolder::Open(path_ + ".link").status().code(),
            absl::StatusCode::kFailedPrecondition);
  fs::remove(path_ + ".link");
  fs::remove(outside);
}

TEST_F(TrustFolderTest, ReadsNoMoreThanIsWanted) {
  ASSERT_TRUE(folder_->Replace("a", std::string(TrustFolder::kUsualLimit, 'a')).ok());
  EXPECT_TRUE(folder_->Read("a").ok());
  EXPECT_THAT(std::string(folder_->Read("a", 4).status().message()), HasSubstr("than 4 bytes"));
  ASSERT_TRUE(folder_->Replace("a", std::string(TrustFolder::kUsualLimit + 1, 'a')).ok());
  EXPECT_EQ(folder_->Read("a").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(folder_->Read("a", TrustFolder::kUsualLimit + 1).ok());
}

TEST_F(TrustFolderTest, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo((path_ + "/a").c_str(), 0600), 0);
  EXPECT_THAT(std::string(folder_->Read("a").status().message()), HasSubstr("no regular file"));
}

TEST_F(TrustFolderTest, RefusesAFolderThatOthersCanLookInto) {
  ASSERT_EQ(::chmod(path_.c_str(), 0750), 0);
  const auto opened = TrustFolder::Open(path_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("chmod 700 " + path_));
  EXPECT_TRUE(absl::IsNotFound(TrustFolder::Open(path_ + "/none").status()));
}

TEST_F(TrustFolderTest, RootWritesForTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can write for others";
  const auto made = TrustFolder::Make(path_ + "/of-nobody", 65534, 65534);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(made->Replace("a", "b").ok());
  for (const char* name : {"/of-nobody", "/of-nobody/a"}) {
    struct stat facts = {};
    ASSERT_EQ(::stat((path_ + name).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, 65534u) << name;
    EXPECT_EQ(facts.st_gid, 65534u) << name;
  }
}

TEST_F(TrustFolderTest, IdentityIsReadAsItWasKept) {
  const HostIdentity kept = Identity();
  ASSERT_TRUE(KeepIdentity(*folder_, kOfHost, kept).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("authority.pem", "host.pem", "host.key"));
  const auto read = ReadIdentity(*folder_, kOfHost);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->authority, kept.authority);
  EXPECT_EQ(read->certificate, kept.certificate);
  EXPECT_EQ(read->key, kept.key);
}

// After each step of keeping another identity, the parts in the folder match.
TEST_F(TrustFolderTest, IdentityIsWholeWheneverThePowerGoes) {
  const HostIdentity former = Identity();
  const HostIdentity later = Identity();
  ASSERT_TRUE(KeepIdentity(*folder_, kOfHost, former).ok());
  ASSERT_TRUE(folder_->Replace("host.key.next", later.key).ok());
  EXPECT_EQ(ReadIdentity(*folder_, kOfHost)->key, former.key);
  ASSERT_TRUE(folder_->Replace("host.pem", later.certificate).ok());
  EXPECT_EQ(ReadIdentity(*folder_, kOfHost)->key, later.key);
  ASSERT_TRUE(folder_->Replace("host.key", later.key).ok());
  EXPECT_EQ(ReadIdentity(*folder_, kOfHost)->key, later.key);
}

TEST_F(TrustFolderTest, IdentityOfTwoIsNone) {
  HostIdentity mixed = Identity();
  EXPECT_TRUE(absl::IsNotFound(ReadIdentity(*folder_, kOfHost).status()));
  mixed.key = Identity().key;
  ASSERT_TRUE(KeepIdentity(*folder_, kOfHost, mixed).ok());
  EXPECT_THAT(std::string(ReadIdentity(*folder_, kOfHost).status().message()),
              HasSubstr("host.key is not the key of host.pem"));
}

TEST_F(TrustFolderTest, KeepsTheAuthority) {
  const Authority kept = *MakeAuthority(kNow);
  ASSERT_TRUE(KeepAuthority(*folder_, kept).ok());
  const auto read = ReadAuthority(*folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->certificate, kept.certificate);
  EXPECT_EQ(read->key, kept.key);
  ASSERT_TRUE(folder_->Remove("authority.pem").ok());
  ASSERT_TRUE(folder_->Remove("authority.pem").ok());
  EXPECT_TRUE(absl::IsNotFound(ReadAuthority(*folder_).status()));
}

}  // namespace
}  // namespace hlaunch
