// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests the head's end and a node daemon's end over loopback.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "rendezvous/net/cluster_wire/wire_limits.h"
#include "tests/rendezvous/net/cluster_wire/wire_lab.h"

namespace hlaunch {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class ClusterWire : public testing::Test {
 protected:
  bool Until(const std::function<bool()>& holds) { return RunUntil(loop_, holds); }

  asio::io_context loop_;
  const OwnCluster cluster_;
  RecordingHead head_{loop_, cluster_.Head()};
};

TEST_F(ClusterWire, AHostComesAndIsNamedByItsCertificate) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node-1.rack_2"));
  EXPECT_FALSE(link.link->connected());
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  EXPECT_TRUE(link.link->connected());
  EXPECT_THAT(head_.history, ElementsAre("came node-1.rack_2"));
  EXPECT_EQ(head_.server->peers(), 1u);
  link.link.reset();
  ASSERT_TRUE(Until([&] { return head_.hosts.empty(); }));
  EXPECT_THAT(head_.history, ElementsAre("came node-1.rack_2", "left node-1.rack_2"));
}

TEST_F(ClusterWire, ANameIsLookedUp) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"), "localhost");
  EXPECT_TRUE(Until([&] { return link.ups == 1; }));
}

TEST_F(ClusterWire, MessagesComeInTheirOrderBothWays) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  const uint64_t peer = head_.PeerOf("node1");
  constexpr int kMany = 2000;
  for (int i = 0; i < kMany; ++i) {
    link.link->Send(NewsOf("part", {{"job", i}}));
    head_.server->Send(peer, Question(i, "start", {{"job", i}}));
  }
  ASSERT_TRUE(Until([&] { return head_.said.size() == kMany && link.said.size() == kMany; }));
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(head_.said[i].second.tell, "part");
    EXPECT_EQ(head_.said[i].second.body["job"], i);
    EXPECT_EQ(link.said[i].ask, "start");
    EXPECT_EQ(link.said[i].body["job"], i);
  }
}

TEST_F(ClusterWire, AQuestionHasItsOwnAnswer) {
  head_.on_said = [this](uint64_t peer, const Envelope& question) {
    if (question.ask == "jobs") {
      head_.server->Send(peer, AnswerTo(question, {{"of", question.user->name}}));
    } else {
      head_.server->Send(peer, ErrorTo(question, absl::NotFoundError("no such verb")));
    }
  };
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  std::vector<absl::StatusOr<json>> answers;
  const auto keep = [&](absl::StatusOr<json> answer) { answers.push_back(std::move(answer)); };
  link.link->Ask("jobs", json::object(), ClusterUser{"alice", 1000, false, false}, keep);
  link.link->Ask("dance", json::object(), std::nullopt, keep);
  EXPECT_TRUE(answers.empty());
  ASSERT_TRUE(Until([&] { return answers.size() == 2; }));
  EXPECT_EQ((*answers[0])["of"], "alice");
  EXPECT_EQ(answers[1].status(), absl::NotFoundError("no such verb"));
  EXPECT_TRUE(link.said.empty());
}

TEST_F(ClusterWire, LargeMessagesPassAndTooLargeOnesAreRefused) {
  const std::string large(kMaxClusterFrame - 1000, 'a');
  const std::string too_large(kMaxClusterFrame, 'a');
  head_.on_said = [&](uint64_t peer, const Envelope& question) {
    const bool small = question.body["text"] != "more";
    head_.server->Send(peer, AnswerTo(question, {{"text", small ? large : too_large}}));
  };
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  std::vector<absl::StatusOr<json>> answers;
  const auto keep = [&](absl::StatusOr<json> answer) { answers.push_back(std::move(answer)); };
  link.link->Ask("log", {{"text", large}}, std::nullopt, keep);
  ASSERT_TRUE(Until([&] { return answers.size() == 1; }));
  EXPECT_EQ((*answers[0])["text"], large);
  link.link->Ask("log", {{"text", "more"}}, std::nullopt, keep);
  ASSERT_TRUE(Until([&] { return answers.size() == 2; }));
  EXPECT_TRUE(absl::IsResourceExhausted(answers[1].status()));
  link.link->Ask("log", {{"text", too_large}}, std::nullopt, keep);
  ASSERT_TRUE(Until([&] { return answers.size() == 3; }));
  EXPECT_TRUE(absl::IsResourceExhausted(answers[2].status()));
  EXPECT_TRUE(link.downs.empty());
}

TEST_F(ClusterWire, ManyLargeAnswersAtOnceDoNotEndTheConnection) {
  const std::string large(kMaxClusterFrame - 1000, 'a');
  head_.on_said = [&](uint64_t peer, const Envelope& question) {
    head_.server->Send(peer, AnswerTo(question, {{"text", large}}));
  };
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  std::vector<absl::Status> answers;
  for (int i = 0; i < 20; ++i) {
    link.link->Ask("log", json::object(), std::nullopt,
                   [&](absl::StatusOr<json> answer) { answers.push_back(answer.status()); });
  }
  ASSERT_TRUE(Until([&] { return answers.size() == 20; }));
  EXPECT_TRUE(answers[0].ok());
  EXPECT_TRUE(absl::IsResourceExhausted(answers.back())) << answers.back();
  EXPECT_TRUE(link.downs.empty());
}

TEST_F(ClusterWire, TheLinkComesAgainAfterTheHeadWas) {
  const uint16_t port = head_.port();
  RecordingLink link(loop_, port, cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  std::vector<absl::StatusOr<json>> answers;
  const auto keep = [&](absl::StatusOr<json> answer) { answers.push_back(std::move(answer)); };
  link.link->Ask("jobs", json::object(), std::nullopt, keep);
  head_.server.reset();
  // The pending question has an answer, and so has one asked while the link is down.
  ASSERT_TRUE(Until([&] { return link.downs.size() >= 2 && answers.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(answers[0].status())) << answers[0].status();
  EXPECT_TRUE(absl::IsUnavailable(link.downs.back())) << link.downs.back();
  EXPECT_THAT(std::string(link.downs.back().message()), HasSubstr(absl::StrCat(":", port)));
  EXPECT_FALSE(link.link->connected());
  link.link->Ask("jobs", json::object(), std::nullopt, keep);
  link.link->Send(NewsOf("part", json::object()));
  ASSERT_TRUE(Until([&] { return answers.size() == 2; }));
  EXPECT_TRUE(absl::IsUnavailable(answers[1].status()));
  const RecordingHead next(loop_, cluster_.Head(), port);
  ASSERT_TRUE(Until([&] { return link.ups == 2; }));
  EXPECT_THAT(next.history, ElementsAre("came node1"));
  EXPECT_TRUE(next.said.empty());  // Messages sent while it was down are lost.
}

TEST_F(ClusterWire, AHostThatIsCutAndNotAdmittedStaysOut) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  RecordingLink other(loop_, head_.port(), cluster_.Host("node2"));
  ASSERT_TRUE(Until([&] { return link.ups == 1 && other.ups == 1; }));
  head_.thrown_out = "node1";
  head_.server->Cut(head_.PeerOf("node1"));
  ASSERT_TRUE(Until([&] { return link.downs.size() >= 3; }));
  EXPECT_EQ(link.ups, 1);
  EXPECT_EQ(head_.history.back(), "left node1");
  EXPECT_EQ(head_.server->peers(), 1u);
  EXPECT_THAT(std::string(link.downs.back().message()), HasSubstr("without a word"));
  EXPECT_TRUE(other.link->connected());
}

TEST_F(ClusterWire, TheNewestConnectionOfAHostCounts) {
  auto first = std::make_unique<RecordingLink>(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return first->ups == 1; }));
  RecordingLink second(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return second.ups == 1; }));
  EXPECT_THAT(head_.history, ElementsAre("came node1", "left node1", "came node1"));
  ASSERT_TRUE(Until([&] { return first->downs.size() == 1; }));
  first.reset();
  EXPECT_EQ(head_.server->peers(), 1u);
}

TEST_F(ClusterWire, ARenewedIdentityIsShownFromTheNextConnectionOn) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1", /*lives=*/10));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  EXPECT_TRUE(head_.server->Renew(cluster_.Head()).ok());
  link.link->Renew(cluster_.Host("node1"));
  link.link->Send(NewsOf("part", json::object()));
  ASSERT_TRUE(Until([&] { return head_.said.size() == 1; }));
  EXPECT_TRUE(link.downs.empty());
  // The former certificate expires. Its connection is cut, and the next one lives.
  ASSERT_TRUE(Until([&] { return link.ups == 2; }));
  EXPECT_THAT(head_.history, ElementsAre("came node1", "left node1", "came node1"));
}

TEST_F(ClusterWire, AHeadThatCannotBeIsNotStartedOrRenewedTo) {
  EXPECT_TRUE(absl::IsInvalidArgument(head_.server->Renew(cluster_.Host("node1"))));
  EXPECT_TRUE(absl::IsInvalidArgument(head_.server->Renew({})));
  HostIdentity torn = cluster_.Head();
  torn.key = cluster_.Head().key;
  EXPECT_TRUE(absl::IsInvalidArgument(head_.server->Renew(torn)));
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  EXPECT_TRUE(Until([&] { return link.ups == 1; }));
}

TEST_F(ClusterWire, ALinkWithoutAnIdentitySaysSo) {
  RecordingLink link(loop_, head_.port(), {});
  ASSERT_TRUE(Until([&] { return !link.downs.empty(); }));
  EXPECT_TRUE(absl::IsInvalidArgument(link.downs[0]));
}

TEST_F(ClusterWire, ASlowReaderIsCutAndOthersAreNotKeptFromTheirs) {
  asio::io_context slow_loop;
  RecordingWire slow(slow_loop, ConnectTo(head_.port()), *TlsOfHost(cluster_.Host("slow")));
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(RunUntil(
      loop_, [&] { return slow.pings == 1 && link.ups == 1; }, &slow_loop));
  const uint64_t peer = head_.PeerOf("slow");
  const std::string mebibyte(1 << 20, 'a');
  int sent = 0;
  ASSERT_TRUE(Until([&] {  // The peer reads no more, and the kernel's buffers are bounded.
    head_.server->Send(peer, NewsOf("log", {{"text", mebibyte}}));
    head_.server->Send(head_.PeerOf("node1"), NewsOf("log", json::object()));
    ++sent;
    return head_.PeerOf("slow") == 0;
  }));
  EXPECT_GE(sent, 16);
  EXPECT_LT(sent, 200);
  ASSERT_TRUE(Until([&] { return link.said.size() == static_cast<size_t>(sent); }));
  EXPECT_EQ(head_.history.back(), "left slow");
}

TEST_F(ClusterWire, NonsenseEndsAConnection) {
  RecordingWire wire(loop_, ConnectTo(head_.port()), *TlsOfHost(cluster_.Host("node1")));
  ASSERT_TRUE(Until([&] { return wire.pings == 1; }));
  Envelope nonsense = NewsOf("part", json::object());
  nonsense.tell = "PART";
  wire.wire->Send(nonsense);
  ASSERT_TRUE(Until([&] { return wire.ended.size() == 1; }));
  EXPECT_TRUE(head_.said.empty());
  EXPECT_EQ(head_.history.back(), "left node1");
}

TEST_F(ClusterWire, WhoIsSilentIsCut) {
  asio::io_context silent_loop;
  RecordingWire silent(silent_loop, ConnectTo(head_.port()), *TlsOfHost(cluster_.Host("silent")));
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(RunUntil(
      loop_, [&] { return silent.pings == 1 && link.ups == 1; }, &silent_loop));
  ASSERT_TRUE(Until([&] { return head_.PeerOf("silent") == 0; }));
  EXPECT_NE(head_.PeerOf("node1"), 0u);  // It sends only pings.
  EXPECT_TRUE(link.downs.empty());
}

TEST_F(ClusterWire, AHeadThatIsSilentIsLeft) {
  asio::io_context link_loop;
  RecordingLink link(link_loop, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(RunUntil(
      link_loop, [&] { return link.ups == 1; }, &loop_));
  ASSERT_TRUE(RunUntil(link_loop, [&] { return !link.downs.empty(); }));
  EXPECT_THAT(std::string(link.downs[0].message()), HasSubstr("silent"));
}

TEST_F(ClusterWire, NobodyIsJudgedByAPauseOfOurOwn) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  std::this_thread::sleep_for(kSilence + kPingEvery);  // Like a stopped process.
  const Instant after = MonotonicClock().Now() + 2 * kPingEvery;
  ASSERT_TRUE(Until([&] { return MonotonicClock().Now() > after; }));
  EXPECT_TRUE(link.downs.empty());
  EXPECT_THAT(head_.history, ElementsAre("came node1"));
}

}  // namespace
}  // namespace hlaunch
