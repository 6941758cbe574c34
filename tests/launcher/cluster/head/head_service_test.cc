// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_service.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/release.h"
#include "proto/cluster/cluster_messages.h"
#include "rendezvous/cluster/membership/join_registrar.h"
#include "rendezvous/cluster/membership/join_token.h"
#include "rendezvous/net/cluster_wire/ask_as_stranger.h"
#include "rendezvous/net/cluster_wire/cluster_link.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(60);

const ClusterUser kAlice = {"alice", 1001, false, false};
const ClusterUser kBob = {"bob", 1002, false, true};  // Claims to be on the head's host.
const ClusterUser kAda = {"ada", 1003, true, false};
const ClusterUser kRoot = {"root", 0, true, false};

json OneNodeJob() {
  JobRequest request;
  request.name = "train.py";
  request.workers = 1;
  request.devices = "none";
  request.script = {"train.py"};
  request.directory = "/";
  return ToJson(request);
}

// A host's daemon as the head sees it: it starts everything that it is told to.
class FakeDaemon {
 public:
  FakeDaemon(asio::io_context& loop, uint16_t port, const HostIdentity& identity)
      : link_(loop, "127.0.0.1", port, identity,
              {[this] { TellAll(); }, [this](const Envelope& envelope) { Obey(envelope); },
               [](const absl::Status&) {}}) {}

  ClusterLink& link() { return link_; }
  std::vector<std::string> orders;  // Such as "start 1".
  bool answers_logs = true;
  bool told = false;

  void Tell(uint64_t job, PartState state, std::optional<int> code = std::nullopt) {
    PartTold part;
    part.job = job;
    part.state = state;
    part.exit_code = code;
    parts_[job] = part;
    link_.Send(NewsOf("part", ToJson(part)));
  }

 private:
  void TellAll() {
    HostFacts facts;
    facts.version = kRelease;
    facts.boot_id = "boot1";
    facts.slots = 1;
    link_.Send(NewsOf("host", ToJson(facts)));
    for (const auto& [job, part] : parts_) link_.Send(NewsOf("part", ToJson(part)));
    link_.Send(NewsOf("parts", json::object()));
    told = true;
  }

  void Obey(const Envelope& order) {
    const auto job = order.body.at("job").get<uint64_t>();
    orders.push_back(order.ask + " " + std::to_string(job));
    if (order.ask == "log") {
      if (answers_logs)
        link_.Send(AnswerTo(order, ToJson(LogAnswer{"a line\n", "7", false, true})));
      return;
    }
    link_.Send(AnswerTo(order, json::object()));
    if (order.ask == "start") Tell(job, PartState::kRunning);
    if (order.ask == "signal") Tell(job, PartState::kEnded, 143);
    if (order.ask == "forget") parts_.erase(job);
  }

  std::map<uint64_t, PartTold> parts_;
  ClusterLink link_;
};

class HeadServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "head_" + std::to_string(::getpid());
    std::filesystem::remove_all(path_);
    authority_ = MakeAuthority(std::time(nullptr)).value();
    const TrustFolder folder = TrustFolder::Make(path_, ::geteuid(), ::getegid()).value();
    JoinRegistrar registrar(authority_);
    identities_["node1"] = Certified(registrar, "node1");
    identities_["node2"] = Joined(registrar, "node2");
    ASSERT_TRUE(KeepAuthority(folder, authority_).ok());
    ASSERT_TRUE(KeepJoinRegistrar(folder, registrar).ok());
    ListeningSocket listening = Listen("127.0.0.1", 0).value();
    port_ = listening.port;
    StartHead(std::move(listening.fd));
  }

  void TearDown() override {
    daemons_.clear();
    head_.reset();
    std::filesystem::remove_all(path_);
  }

  HostIdentity Certified(JoinRegistrar& registrar, const std::string& host,
                         std::time_t now = std::time(nullptr)) {
    const HostRequest request = MakeHostRequest(host).value();
    const std::string certificate = registrar.Certify(host, request.request, now).value();
    return {authority_.certificate, certificate, request.key};
  }

  HostIdentity Joined(JoinRegistrar& registrar, const std::string& host,
                      std::time_t now = std::time(nullptr)) {
    const HostRequest request = MakeHostRequest(host).value();
    const JoinQuestion question = {TextOf(registrar.MakeToken(now)), host, request.request};
    const std::string certificate = registrar.Join(question, "127.0.0.1", false, now).value();
    return {authority_.certificate, certificate, request.key};
  }

  void StartHead(UniqueFd listener) {
    HeadService::Options options;
    options.join_at = "node1:29400";
    options.failed = [this](const absl::Status& why) { failure_ = why; };
    auto started = HeadService::Start(loop_, std::move(listener), TrustFolder::Open(path_).value(),
                                      std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    head_ = std::move(started).value();
  }

  // The head ends, and another one starts from the disk.
  void RestartHead() {
    FakeDaemon& daemon = Daemon("node1");
    daemon.told = false;
    head_.reset();
    StartHead(Listen("127.0.0.1", port_).value().fd);
    ASSERT_TRUE(Until([&] { return daemon.told; }));
  }

  FakeDaemon& Daemon(const std::string& host) {
    auto& daemon = daemons_[host];
    if (!daemon) {
      daemon = std::make_unique<FakeDaemon>(loop_, port_, identities_.at(host));
      EXPECT_TRUE(Until([&] { return daemon->told; }));
    }
    return *daemon;
  }

  bool Until(const std::function<bool()>& is_so) {
    const Instant end = MonotonicClock().Now() + kPatience;
    while (!is_so() && MonotonicClock().Now() < end) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
    return is_so();
  }

  absl::StatusOr<json> Ask(const std::string& host, const std::optional<ClusterUser>& user,
                           const std::string& verb, json body = json::object()) {
    std::optional<absl::StatusOr<json>> answer;
    Daemon(host).link().Ask(verb, std::move(body), user,
                            [&](absl::StatusOr<json> got) { answer = std::move(got); });
    EXPECT_TRUE(Until([&] { return answer.has_value(); })) << verb;
    return answer.value_or(absl::UnknownError("no answer"));
  }

  bool UntilState(uint64_t job, const std::string& state) {
    return Until([&] { return Ask("node1", kAlice, "job", {{"job", job}})->at("state") == state; });
  }

  asio::io_context loop_{1};
  std::string path_;
  Authority authority_;
  std::map<std::string, HostIdentity> identities_;
  std::unique_ptr<HeadService> head_;
  std::map<std::string, std::unique_ptr<FakeDaemon>> daemons_;
  uint16_t port_ = 0;
  absl::Status failure_;
};

TEST_F(HeadServiceTest, StartsAJobAndStopsIt) {
  Daemon("node1");
  const auto submitted = Ask("node1", kAlice, "submit", OneNodeJob());
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->at("job"), 1);
  EXPECT_TRUE(UntilState(1, "running"));
  EXPECT_TRUE(Ask("node1", kAlice, "stop", {{"job", 1}}).ok());
  EXPECT_TRUE(UntilState(1, "ended"));
  EXPECT_TRUE(Until([&] { return Daemon("node1").orders.size() == 3; }));
  EXPECT_THAT(Daemon("node1").orders, ElementsAre("start 1", "signal 1", "forget 1"));
}

TEST_F(HeadServiceTest, AnswersALongPollOnceTheJobIsAnother) {
  Daemon("node1");
  ASSERT_TRUE(Ask("node1", kAlice, "submit", OneNodeJob()).ok());
  ASSERT_TRUE(UntilState(1, "running"));
  const json now = Ask("node1", kAlice, "job", {{"job", 1}}).value();
  std::optional<json> later;
  Daemon("node1").link().Ask("job", {{"job", 1}, {"seen", now.at("version")}, {"wait_s", 20}},
                             kAlice, [&](absl::StatusOr<json> got) { later = got.value(); });
  ASSERT_TRUE(Ask("node1", kAlice, "nodes").ok());
  EXPECT_FALSE(later.has_value());
  Daemon("node1").Tell(1, PartState::kEnded, 3);
  ASSERT_TRUE(Until([&] { return later.has_value(); }));
  EXPECT_EQ(later->at("state"), "ended");
  EXPECT_EQ(later->at("exit_code"), 3);
}

TEST_F(HeadServiceTest, GoesOnAfterItsOwnEnd) {
  Daemon("node1");
  ASSERT_TRUE(Ask("node1", kAlice, "submit", OneNodeJob()).ok());
  ASSERT_TRUE(UntilState(1, "running"));
  ASSERT_TRUE(Ask("node1", kBob, "submit", OneNodeJob()).ok());
  RestartHead();
  EXPECT_EQ(Ask("node1", kAlice, "job", {{"job", 1}})->at("state"), "running");
  EXPECT_EQ(Ask("node1", kAlice, "job", {{"job", 2}})->at("state"), "waiting");
  EXPECT_THAT(Daemon("node1").orders, ElementsAre("start 1"));
  Daemon("node1").Tell(1, PartState::kEnded, 0);
  EXPECT_TRUE(UntilState(2, "running"));
}

TEST_F(HeadServiceTest, RelaysALogToTheHostThatHasIt) {
  Daemon("node1");
  ASSERT_TRUE(Ask("node1", kAlice, "submit", OneNodeJob()).ok());
  ASSERT_TRUE(UntilState(1, "running"));
  EXPECT_EQ(Ask("node2", kAlice, "log", {{"job", 1}})->at("text"), "a line\n");
  EXPECT_EQ(Ask("node2", kBob, "log", {{"job", 1}}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(HeadServiceTest, SaysThatALogIsOnAHostThatIsAway) {
  Daemon("node1");
  ASSERT_TRUE(Ask("node1", kAlice, "submit", OneNodeJob()).ok());
  ASSERT_TRUE(UntilState(1, "running"));
  Daemon("node2");
  Daemon("node1").answers_logs = false;
  std::optional<absl::Status> pending;
  Daemon("node2").link().Ask("log", {{"job", 1}}, kAlice,
                             [&](absl::StatusOr<json> got) { pending = got.status(); });
  ASSERT_TRUE(Until([&] { return Daemon("node1").orders.back() == "log 1"; }));
  daemons_.erase("node1");
  ASSERT_TRUE(Until([&] { return pending.has_value(); }));
  EXPECT_EQ(pending->code(), absl::StatusCode::kUnavailable);
  const auto again = Ask("node2", kAlice, "log", {{"job", 1}});
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.status().message()),
              HasSubstr("node1, which has the log, is away"));
}

TEST_F(HeadServiceTest, MakesTokensForRootOnItsOwnHostOnly) {
  EXPECT_EQ(Ask("node1", kBob, "token").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Ask("node1", kAda, "token").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Ask("node2", kRoot, "token").status().code(), absl::StatusCode::kPermissionDenied);
  const auto token = Ask("node1", kRoot, "token");
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->at("join"), "node1:29400");
  EXPECT_EQ(ReadJoinToken(token->at("token").get<std::string>())->pin,
            KeyPinOf(authority_.certificate));
}

TEST_F(HeadServiceTest, CutsAHostThatIsThrownOut) {
  Daemon("node2");
  EXPECT_EQ(Ask("node1", kRoot, "throw_out", {{"host", "node1"}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Ask("node1", kRoot, "throw_out", {{"host", "node2"}}).ok());
  EXPECT_TRUE(Until([&] { return !Daemon("node2").link().connected(); }));
  RestartHead();
  const json nodes = Ask("node1", kAlice, "nodes").value();
  EXPECT_EQ(nodes.at("hosts").size(), 1u);
  EXPECT_FALSE(Daemon("node2").link().connected());
}

TEST_F(HeadServiceTest, ThrowsOutAHostThatTheRegistrarHasForgotten) {
  Daemon("node1");
  Daemon("node2");
  daemons_.erase("node2");
  JoinRegistrar registrar(authority_);
  Certified(registrar, "node1");
  ASSERT_TRUE(KeepJoinRegistrar(TrustFolder::Open(path_).value(), registrar).ok());
  RestartHead();
  EXPECT_EQ(Ask("node1", kAlice, "nodes")->at("hosts").size(), 2u);
  EXPECT_TRUE(Ask("node1", kRoot, "throw_out", {{"host", "node2"}}).ok());
  EXPECT_EQ(Ask("node1", kAlice, "nodes")->at("hosts").size(), 1u);
  EXPECT_EQ(Ask("node1", kRoot, "throw_out", {{"host", "node2"}}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(HeadServiceTest, EndsWhereItCannotKeepWhoMayCome) {
  Daemon("node1");
  std::filesystem::remove_all(path_);
  std::optional<absl::Status> answer;
  Daemon("node1").link().Ask("token", json::object(), kRoot,
                             [&](absl::StatusOr<json> got) { answer = got.status(); });
  ASSERT_TRUE(Until([&] { return !failure_.ok(); }));
  EXPECT_FALSE(answer.has_value());
}

TEST_F(HeadServiceTest, RefusesAQuestionOfNobody) {
  std::optional<absl::Status> answer;
  Daemon("node1").link().Ask("jobs", json::object(), std::nullopt,
                             [&](absl::StatusOr<json> got) { answer = got.status(); });
  ASSERT_TRUE(Until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(HeadServiceTest, RenewsAHostsCertificate) {
  const HostRequest request = MakeHostRequest("node1").value();
  const json body = {{"request", request.request}};
  const auto of_a_user = Ask("node1", kRoot, "renew", body);
  EXPECT_FALSE(of_a_user.ok());  // Else a user gets a host's certificate for any key.
  const auto answer = Ask("node1", std::nullopt, "renew", body);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(ReadHostCertificate(answer->at("certificate").get<std::string>())->host, "node1");
}

// This is the state after 40 days without power.
TEST_F(HeadServiceTest, RenewsTheExpiredCertificateOfItsOwnHostAndOfNoOther) {
  head_.reset();
  const std::time_t long_ago = std::time(nullptr) - 40 * 86400;
  JoinRegistrar registrar(authority_);
  identities_["node1"] = Certified(registrar, "node1", long_ago);
  identities_["node2"] = Joined(registrar, "node2", long_ago);
  ASSERT_TRUE(KeepJoinRegistrar(TrustFolder::Open(path_).value(), registrar).ok());
  StartHead(Listen("127.0.0.1", port_).value().fd);
  const HostRequest request = MakeHostRequest("node1").value();
  const auto answer = Ask("node1", std::nullopt, "renew", {{"request", request.request}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto renewed = ReadHostCertificate(answer->at("certificate").get<std::string>());
  EXPECT_GT(renewed->expires, std::time(nullptr) + kCertificateLife - 3600);
  absl::Status refused;
  ClusterLink other(
      loop_, "127.0.0.1", port_, identities_["node2"],
      {[] {}, [](const Envelope&) {}, [&](const absl::Status& why) { refused = why; }});
  ASSERT_TRUE(Until([&] { return !refused.ok(); }));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("expired"));
}

TEST_F(HeadServiceTest, AnswersAStrangerOnceItIsKeptThatHeHasJoined) {
  Daemon("node1");
  const std::string token = Ask("node1", kRoot, "token")->at("token");
  const HostRequest request = MakeHostRequest("node3").value();
  const json question = ToJson(JoinQuestion{token, "node3", request.request});
  std::optional<absl::StatusOr<json>> answer;
  std::thread stranger([&, pin = KeyPinOf(authority_.certificate)] {
    absl::StatusOr<json> got =
        AskAsStranger("127.0.0.1", port_, pin, Question(1, "join", question), kPatience);
    asio::post(loop_, [&, got = std::move(got)] { answer = got; });
  });
  EXPECT_TRUE(Until([&] { return answer.has_value(); }));
  stranger.join();
  ASSERT_TRUE(answer->ok()) << answer->status();
  const auto shown = ReadHostCertificate((*answer)->at("certificate").get<std::string>());
  const JoinRegistrar kept = ReadJoinRegistrar(TrustFolder::Open(path_).value()).value();
  EXPECT_TRUE(kept.Admits(*shown, std::time(nullptr)).ok());
}

TEST_F(HeadServiceTest, AnswersNobodyWhatItCannotKeep) {
  Daemon("node1");
  std::filesystem::remove_all(path_);
  std::optional<absl::Status> answer;
  Daemon("node1").link().Ask("submit", OneNodeJob(), kAlice,
                             [&](absl::StatusOr<json> got) { answer = got.status(); });
  ASSERT_TRUE(Until([&] { return !failure_.ok(); }));
  EXPECT_FALSE(answer.has_value());
  EXPECT_THAT(Daemon("node1").orders, ElementsAre());
}

TEST_F(HeadServiceTest, ShowsFiguresOfJobsHostsAndPlacing) {
  Daemon("node1");
  ASSERT_TRUE(Ask("node1", kAlice, "submit", OneNodeJob()).ok());
  ASSERT_TRUE(UntilState(1, "running"));
  const std::string text = head_->Metrics();
  EXPECT_THAT(text, HasSubstr("hlaunch_head_jobs{state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_head_hosts{state=\"full\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_head_place_seconds_count 1\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_head_longest_wait_seconds 0\n"));
  EXPECT_THAT(text, HasSubstr("hlaunch_head_certificate_expires_seconds{whose=\"head\"} 1"));
  EXPECT_THAT(text, HasSubstr("hlaunch_head_certificate_expires_seconds{whose=\"host\"} 1"));
  EXPECT_EQ(head_->Status(), "1 of 1 host there; jobs: 1 placed, 0 waiting");
}

}  // namespace
}  // namespace hlaunch
