// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/join_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/membership/found_cluster.h"
#include "rendezvous/cluster/membership/join_registrar.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using testing::HasSubstr;

constexpr std::time_t kNow = 1800000000;
const Endpoint kHead = {"node0", 29400};

// Two hosts, one of them a head, each in its own folder. A function call stands for the wire.
class TwoHostsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = absl::StrCat(testing::TempDir(), "cluster.XXXXXX");
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
    for (ClusterPaths* const host : {&head_, &other_}) {
      const std::string folder = absl::StrCat(root_, host == &head_ ? "/a" : "/b");
      fs::create_directory(folder);
      *host = {folder + "/lib", folder + "/head", folder + "/passwd", folder + "/units"};
      std::ofstream(host->passwd) << "hlaunch-head:x:" << ::geteuid() << ":" << ::getegid()
                                  << "::/:/bin/false\n";
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  absl::StatusOr<FoundedCluster> Found() {
    absl::StatusOr<FoundedCluster> made = FoundCluster(head_, "node0", "node0:29400", kNow);
    if (!made.ok()) return made;
    registrar_.emplace(*ReadJoinRegistrar(*TrustFolder::Open(head_.head)));
    return made;
  }

  // The head's answer to a stranger.
  absl::StatusOr<nlohmann::json> Answer(const Envelope& question) {
    ++asked_;
    EXPECT_EQ(question.ask, "join");
    const auto read = ReadJoinQuestion(question.body);
    if (!read.ok()) return read.status();
    const auto made = registrar_->Join(*read, "192.0.2.1", false, kNow);
    if (!made.ok()) return made.status();
    return nlohmann::json{
        {"certificate", *made},
        {"authority", ReadAuthority(*TrustFolder::Open(head_.head))->certificate}};
  }

  absl::Status Join(const std::string& token, std::time_t now = kNow) {
    const auto ask = [this](const Endpoint& head, const std::string& pin,
                            const Envelope& question) -> absl::StatusOr<nlohmann::json> {
      EXPECT_EQ(head.host, "node0");
      if (pin != KeyPinOf(ReadAuthority(*TrustFolder::Open(head_.head))->certificate)) {
        return absl::UnauthenticatedError("its certificate is not believed");
      }
      return Answer(question);
    };
    return JoinCluster(other_, {kHead, token, "node1"}, ask, [now] { return now; });
  }

  std::string root_;
  ClusterPaths head_, other_;
  std::optional<JoinRegistrar> registrar_;
  int asked_ = 0;
};

TEST_F(TwoHostsTest, FoundingMakesAllOfAHead) {
  const auto made = Found();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->head, "node0:29400");
  EXPECT_EQ(made->until, kNow + kTokenLife);
  const TrustFolder folder = *TrustFolder::Open(head_.head);
  EXPECT_EQ(ReadJoinRegistrar(folder)->own_host(), "node0");
  EXPECT_EQ(*folder.Read(kJoinAtFile), "node0:29400\n");
  const HostIdentity of_head = *ReadIdentity(folder, kOfHead);
  EXPECT_EQ(of_head.authority, ReadAuthority(folder)->certificate);
  const HostIdentity own = *ReadIdentity(*TrustFolder::Open(head_.host), kOfHost);
  const auto host = CheckHostIdentity(own);
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->host, "node0");
  EXPECT_TRUE(registrar_->Admits(*host, kNow).ok());
  EXPECT_EQ(HeadOf(head_), "node0:29400");
  EXPECT_TRUE(IsHead(head_));
  EXPECT_TRUE(IsMember(head_));
}

TEST_F(TwoHostsTest, FoundingIsDoneOnce) {
  ASSERT_TRUE(Found().ok());
  const std::string authority = ReadAuthority(*TrustFolder::Open(head_.head))->certificate;
  EXPECT_EQ(Found().status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadAuthority(*TrustFolder::Open(head_.head))->certificate, authority);
}

TEST_F(TwoHostsTest, FoundingWithoutTheHeadsUserMakesNothing) {
  std::ofstream(head_.passwd) << "root:x:0:0::/:/bin/sh\n";
  const auto made = FoundCluster(head_, "node0", "node0:29400", kNow);
  EXPECT_EQ(made.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("useradd --system"));
  EXPECT_FALSE(fs::exists(head_.head));
  EXPECT_FALSE(fs::exists(head_.host));
}

TEST_F(TwoHostsTest, FoundingThatFailsLeavesNothing) {
  std::ofstream(head_.host) << "a file where a folder is to be";
  EXPECT_FALSE(FoundCluster(head_, "node0", "node0:29400", kNow).ok());
  EXPECT_TRUE(fs::is_empty(head_.head));
  EXPECT_FALSE(IsHead(head_));
}

TEST_F(TwoHostsTest, AHostJoinsByTheFirstToken) {
  const auto made = Found();
  const absl::Status joined = Join(made->token);
  ASSERT_TRUE(joined.ok()) << joined;
  const HostIdentity own = *ReadIdentity(*TrustFolder::Open(other_.host), kOfHost);
  EXPECT_EQ(CheckHostIdentity(own)->host, "node1");
  EXPECT_EQ(HeadOf(other_), "node0:29400");
  EXPECT_FALSE(IsHead(other_));
  for (const char* file : {"host.key", "host.pem", "authority.pem", "head"}) {
    struct stat facts = {};
    ASSERT_EQ(::stat((other_.host + "/" + file).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0600u) << file;
  }
}

TEST_F(TwoHostsTest, AHostJoinsOneCluster) {
  const auto made = Found();
  ASSERT_TRUE(Join(made->token).ok());
  const std::string pin = KeyPinOf(MakeAuthority(kNow)->certificate);
  const absl::Status another = Join(TextOf(MakeJoinToken(pin)));
  EXPECT_EQ(another.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(another.message()), HasSubstr("already, that of node0:29400"));
}

TEST_F(TwoHostsTest, AHostThatWasThrownOutJoinsAgain) {
  const auto made = Found();
  ASSERT_TRUE(Join(made->token).ok());
  EXPECT_EQ(NameOf(other_), "node1");
  const CertifiedHost former =
      *CheckHostIdentity(*ReadIdentity(*TrustFolder::Open(other_.host), kOfHost));
  ASSERT_TRUE(registrar_->ThrowOut("node1", kNow).ok());
  const absl::Status again = Join(TextOf(registrar_->MakeToken(kNow)));
  ASSERT_TRUE(again.ok()) << again;
  const CertifiedHost later =
      *CheckHostIdentity(*ReadIdentity(*TrustFolder::Open(other_.host), kOfHost));
  EXPECT_FALSE(registrar_->Admits(former, kNow).ok());
  EXPECT_TRUE(registrar_->Admits(later, kNow).ok());
}

TEST_F(TwoHostsTest, WhatTheHeadRefusesIsSaidAndNothingIsKept) {
  const auto made = Found();
  JoinToken wrong = *ReadJoinToken(made->token);
  wrong.secret = MakeJoinToken("").secret;
  EXPECT_EQ(Join(TextOf(wrong)).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Join("no token").code(), StatusCode::kInvalidArgument);
  const absl::Status other_cluster =
      Join(TextOf(MakeJoinToken(KeyPinOf(MakeAuthority(kNow)->certificate))));
  EXPECT_EQ(other_cluster.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other_cluster.message()), HasSubstr("of another cluster"));
  EXPECT_FALSE(fs::exists(other_.host));
}

TEST_F(TwoHostsTest, ALostAnswerIsAskedForAgain) {
  const auto made = Found();
  const auto ask = [this](const Endpoint&, const std::string&,
                          const Envelope& question) -> absl::StatusOr<nlohmann::json> {
    absl::StatusOr<nlohmann::json> answer = Answer(question);
    if (asked_ == 1) return absl::UnavailableError("the connection broke");
    return answer;
  };
  const absl::Status joined =
      JoinCluster(other_, {kHead, made->token, "node1"}, ask, [] { return kNow; });
  EXPECT_TRUE(joined.ok()) << joined;
  EXPECT_EQ(asked_, 2);
}

TEST_F(TwoHostsTest, NobodyThereIsSaid) {
  const auto made = Found();
  const auto ask = [](const Endpoint&, const std::string&,
                      const Envelope&) -> absl::StatusOr<nlohmann::json> {
    return absl::UnavailableError("the head at node0:29400: Connection refused");
  };
  const absl::Status joined =
      JoinCluster(other_, {kHead, made->token, "node1"}, ask, [] { return kNow; });
  EXPECT_EQ(joined.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(joined.message()), HasSubstr("firewall let port 29400 through"));
}

TEST_F(TwoHostsTest, AClockThatIsWrongIsSaid) {
  const auto made = Found();
  const absl::Status early = Join(made->token, kNow - 86400);
  EXPECT_EQ(early.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(early.message()), HasSubstr("clock says 2027-01-14T08:00:00"));
  EXPECT_FALSE(IsMember(other_));
  EXPECT_TRUE(Join(TextOf(registrar_->MakeToken(kNow)), kNow - 300).ok());
}

TEST_F(TwoHostsTest, LeavingRemovesWhatMakesAMember) {
  const auto made = Found();
  ASSERT_TRUE(Join(made->token).ok());
  ASSERT_TRUE(RemoveMember(other_).ok());
  ASSERT_TRUE(RemoveMember(other_).ok());
  EXPECT_TRUE(fs::is_empty(other_.host));
  ASSERT_TRUE(RemoveHead(head_).ok());
  EXPECT_FALSE(IsHead(head_));
  EXPECT_TRUE(fs::is_empty(head_.head));
}

}  // namespace
}  // namespace hlaunch
