// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/job_token.h"
#include "rendezvous/rpc/client/grpc_rendezvous_client.h"
#include "rendezvous/rpc/client/report_node_death.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/grpc_transport.h"
#include "rendezvous/rpc/query/call_rendezvous.h"
#include "rendezvous/rpc/query/rank_client.h"
#include "rendezvous/rpc/query/status_client.h"
#include "rendezvous/rpc/rendezvous_server.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "tests/fakes/tcp_proxy.h"
#include "tests/rendezvous/no_threads.h"
#include "tests/rendezvous/rounds.h"
#include "tests/rendezvous/site_certificates.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Kind = Directive::Kind;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
constexpr char kOtherToken[] = "fedcba9876543210fedcba9876543210";

// A rendezvous that serves on a free port of loopback.
struct Host {
  explicit Host(const JobPolicy& policy = Policy(1, 1), const std::string& token = "",
                const std::string& address = "127.0.0.1", C10dServer* store = nullptr,
                Duration patience = seconds(100))
      : Host(policy, Trust::OfToken(token).value(), address, store, patience) {}
  Host(const JobPolicy& policy, const Trust& trust, const std::string& address = "127.0.0.1",
       C10dServer* store = nullptr, Duration patience = seconds(100))
      : rendezvous(RulesOf(policy), MonotonicClock()), jobs(MakeOneJob("job", rendezvous)) {
    ListeningSocket socket = Listen(address, 0).value();
    endpoint = {address, socket.port, trust};
    RendezvousServer::Options options;
    options.listener = std::move(socket.fd);
    options.trust = endpoint.trust;
    options.patience = patience;
    if (store != nullptr) options.c10d = [store](UniqueFd fd) { store->Adopt(std::move(fd)); };
    server = RendezvousServer::Start(std::move(options), *jobs).value();
  }

  static JobRules RulesOf(const JobPolicy& policy) {
    JobRules rules;
    rules.job_id = "job";
    rules.policy = policy;
    return rules;
  }

  JobRendezvous rendezvous;
  std::unique_ptr<Jobs> jobs;
  RendezvousEndpoint endpoint;
  std::unique_ptr<RendezvousServer> server;
};

// A node that joins at once and records what it is told.
class Member final : public RendezvousClient::Listener {
 public:
  Member(const RendezvousEndpoint& endpoint, const NodeInfo& info,
         Duration join_timeout = seconds(300))
      : Member(info, GrpcRendezvousClient::Options{endpoint, join_timeout}) {}
  Member(NodeInfo info, GrpcRendezvousClient::Options options,
         const NodeUpdate& first = Says(0, NodePhase::kReady)) {
    info.address.clear();
    info.route_address.clear();
    client_ = std::make_unique<GrpcRendezvousClient>(std::move(options));
    client_->Join(info, first, this);
  }

  void OnDirective(const Directive& directive) override {
    MutexLock lock(&mu_);
    latest_ = directive;
    ++directives_;
    changed_.SignalAll();
  }
  void OnQuestion(const NodeQuestion& question) override {
    if (answers) client_->Answer({question.number, RankList(question.question.ranks), ""});
  }
  void OnWord(const RoundWord& word) override {
    MutexLock lock(&mu_);
    words_[word.node_rank] = word.text;
    changed_.SignalAll();
  }
  void OnContact(bool connected, const std::string& detail) override {
    MutexLock lock(&mu_);
    contacts_.emplace_back(connected, detail);
    changed_.SignalAll();
  }
  void OnEnd(const absl::Status& status) override {
    MutexLock lock(&mu_);
    EXPECT_FALSE(end_.has_value()) << "a second end: " << status;
    end_ = status;
    changed_.SignalAll();
  }

  std::atomic<bool> answers = true;  // Whether it answers questions.

  void Send(const NodeUpdate& update) { client_->Send(update); }
  void Tell(const std::string& text) { client_->Tell({1, 0, text}); }
  // The last words of the other nodes, once that of `node_rank` is `text`.
  std::map<int, std::string> AwaitWord(int node_rank, const std::string& text) {
    MutexLock lock(&mu_);
    AwaitLocked([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return words_[node_rank] == text; });
    return words_;
  }
  bool contacted() { return client_->contacted(); }
  void LedBy(const VoterMembers& places) { client_->LedBy(places); }
  void Leave() { client_.reset(); }

  // The latest directive if it is of this kind, else the next one that is.
  Directive Await(Kind kind) {
    MutexLock lock(&mu_);
    AwaitLocked([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return latest_.has_value() && latest_->kind == kind;
    });
    return latest_.value_or(Directive());
  }
  absl::Status AwaitEnd() {
    MutexLock lock(&mu_);
    AwaitLocked([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return end_.has_value(); });
    return end_.value_or(absl::UnknownError("no end came"));
  }
  // The reports about the connection, once there are `count` of them.
  std::vector<std::pair<bool, std::string>> AwaitContacts(size_t count) {
    MutexLock lock(&mu_);
    AwaitLocked([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return contacts_.size() >= count; });
    auto contacts = contacts_;
    contacts.resize(std::max(count, contacts.size()));
    return contacts;
  }
  std::vector<std::pair<bool, std::string>> contacts() {
    MutexLock lock(&mu_);
    return contacts_;
  }
  int AwaitDirectives(int count) {
    MutexLock lock(&mu_);
    AwaitLocked([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return directives_ >= count; });
    return directives_;
  }
  int directives() {
    MutexLock lock(&mu_);
    return directives_;
  }
  bool EndsWithin(Duration limit) {
    const Instant deadline = MonotonicClock().Now() + limit;
    MutexLock lock(&mu_);
    while (!end_.has_value() && changed_.WaitUntil(&mu_, deadline)) {
    }
    return end_.has_value();
  }

 private:
  template <typename Done>
  void AwaitLocked(Done done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Instant deadline = MonotonicClock().Now() + seconds(300);
    while (!done()) {
      if (!changed_.WaitUntil(&mu_, deadline)) {
        ADD_FAILURE() << "waited for 300 s";
        return;
      }
    }
  }

  Mutex mu_;
  CondVar changed_;
  std::optional<Directive> latest_ ABSL_GUARDED_BY(mu_);
  int directives_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int, std::string> words_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<bool, std::string>> contacts_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<GrpcRendezvousClient> client_;
};

std::vector<std::unique_ptr<Member>> Join(const RendezvousEndpoint& endpoint, int count) {
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < count; ++i) {
    members.push_back(std::make_unique<Member>(endpoint, Node(i, count, count)));
  }
  return members;
}

// All nodes run round 1 and succeed; then they are told to finish and say so.
void RunToTheEnd(Host& host, std::vector<std::unique_ptr<Member>>& members) {
  for (auto& member : members) member->Await(Kind::kRun);
  for (auto& member : members) member->Send(Says(1, NodePhase::kRunning));
  for (auto& member : members) member->Send(Says(1, NodePhase::kSucceeded));
  for (auto& member : members) {
    EXPECT_EQ(member->Await(Kind::kFinish).outcome.exit_code, 0);
    member->Send(Says(1, NodePhase::kFinished));
  }
  for (auto& member : members) member->Leave();
  EXPECT_THAT(host.rendezvous.AwaitAllFinished(MonotonicClock().Now() + seconds(100)),
              testing::IsEmpty());
}

JobPolicy ShortLimits(int nodes) {
  JobPolicy policy = Policy(nodes, nodes);
  policy.lease = {milliseconds(200), milliseconds(1000), milliseconds(200)};
  return policy;
}

UniqueFd Connect(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST(GrpcRendezvous, PartsInPeaceFromANodeWhoseLastWordItWaitedFor) {
  // The rendezvous shuts down as soon as it hears kFinished, as the host's agent does.
  for (int i = 0; i < 30; ++i) {
    Host host;
    Member member(host.endpoint, Node(0, 1, 1));
    member.Await(Kind::kRun);
    member.Send(Says(1, NodePhase::kSucceeded));
    member.Await(Kind::kFinish);
    member.Send(Says(1, NodePhase::kFinished));
    EXPECT_THAT(host.rendezvous.AwaitAllFinished(MonotonicClock().Now() + seconds(100)),
                testing::IsEmpty());
    host.server->Shutdown(seconds(1));
    member.Leave();
    for (const auto& [connected, detail] : member.contacts()) EXPECT_TRUE(connected) << detail;
  }
}

class OverBothFamilies : public testing::TestWithParam<const char*> {};

TEST_P(OverBothFamilies, ThreeNodesJoinRunAndFinish) {
  Host host(Policy(3, 3), kToken, GetParam());
  auto members = Join(host.endpoint, 3);
  for (int i = 0; i < 3; ++i) {
    const Assignment place = members[i]->Await(Kind::kRun).assignment;
    EXPECT_EQ(place.node_rank, i);
    EXPECT_EQ(place.first_rank, 2 * i);
    EXPECT_EQ(place.world_size, 6);
    EXPECT_EQ(place.master_addr, GetParam());
    EXPECT_EQ(place.master_port, 4000);
  }
  RunToTheEnd(host, members);
}

INSTANTIATE_TEST_SUITE_P(GrpcRendezvous, OverBothFamilies, testing::Values("127.0.0.1", "::1"));

TEST(GrpcRendezvous, ResolvesNames) {
  Host host;
  host.endpoint.host = "localhost";
  auto members = Join(host.endpoint, 1);
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, RefusesWrongMissingAndUncalledForTokens) {
  Host guarded(Policy(1, 1), kToken);
  Host open;
  const std::pair<RendezvousEndpoint, const char*> cases[] = {
      {{"127.0.0.1", guarded.endpoint.port, Trust::OfToken(kOtherToken).value()},
       "is not the rendezvous' token"},
      {{"127.0.0.1", guarded.endpoint.port, Trust()}, "this node has no token"},
      {{"127.0.0.1", open.endpoint.port, guarded.endpoint.trust}, "the rendezvous has none"},
  };
  for (const auto& [endpoint, words] : cases) {
    Member member(endpoint, Node(0, 1, 1));
    const absl::Status status = member.AwaitEnd();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(ReportNodeDeath(endpoint, "job", "id0", 1, "x", MonotonicClock().Now() + seconds(100))
                  .code(),
              absl::StatusCode::kPermissionDenied);
    member.Leave();
  }
}

// Trust with TLS or in clear text.
struct TrustKind {
  const char* name;
  absl::StatusOr<Trust> (*of)(absl::string_view token);
};

class WithAToken : public testing::TestWithParam<TrustKind> {};

INSTANTIATE_TEST_SUITE_P(GrpcRendezvous, WithAToken,
                         testing::Values(TrustKind{"Tls", Trust::OfToken},
                                         TrustKind{"InClear", Trust::OfTokenInClear}),
                         [](const auto& tested) { return tested.param.name; });

TEST(GrpcRendezvous, SaysWhichEndEncrypts) {
  Host encrypts(Policy(1, 1), kToken);
  const Trust in_clear = Trust::OfTokenInClear(kToken).value();
  Host clear(Policy(1, 1), in_clear);
  Host open;
  const std::pair<RendezvousEndpoint, const char*> cases[] = {
      {{"127.0.0.1", encrypts.endpoint.port, in_clear},
       "this node has --tls off and the rendezvous encrypts (--tls on); give all nodes the same"},
      {{"127.0.0.1", clear.endpoint.port, Trust::OfToken(kToken).value()},
       "this node encrypts (--tls on) and the rendezvous has --tls off; give all nodes the same"},
      {{"127.0.0.1", clear.endpoint.port, Trust::OfTokenInClear(kOtherToken).value()},
       "is not the rendezvous' token"},
      {{"127.0.0.1", clear.endpoint.port, Trust::OfToken(kOtherToken).value()},
       "is not the rendezvous' token"},
      {{"127.0.0.1", clear.endpoint.port, Trust()}, "this node has no token"},
      {{"127.0.0.1", open.endpoint.port, in_clear}, "the rendezvous has none"},
  };
  for (const auto& [endpoint, words] : cases) {
    Member member(endpoint, Node(0, 1, 1));
    const absl::Status status = member.AwaitEnd();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    const Instant deadline = MonotonicClock().Now() + seconds(100);
    for (const absl::Status& told : {ReportNodeDeath(endpoint, "job", "id0", 1, "x", deadline),
                                     FetchStatus(endpoint, "job", deadline).status()}) {
      EXPECT_EQ(told.code(), absl::StatusCode::kPermissionDenied) << told;
      EXPECT_THAT(std::string(told.message()), HasSubstr(words));
    }
    member.Leave();
  }
}

TEST(GrpcRendezvous, InClearSaysWhyThereIsNoConnection) {
  Host host(Policy(1, 1), Trust::OfTokenInClear(kToken).value());
  host.server.reset();
  const absl::Status told =
      ReportNodeDeath(host.endpoint, "job", "id0", 1, "x", MonotonicClock().Now() + seconds(5));
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(told.message()), HasSubstr("not reached: Connection refused"));
}

TEST_P(WithAToken, RunsAJob) {
  Host host(Policy(2, 2), GetParam().of(kToken).value());
  auto members = Join(host.endpoint, 2);
  RunToTheEnd(host, members);
}

// A host with a site's certificates, which are for "localhost".
struct SiteHost : Host {
  explicit SiteHost(const CertificateFiles& files, int nodes = 1)
      : Host(Policy(nodes, nodes), Trust::OfFiles(files).value()) {
    endpoint.host = "localhost";
  }
  // The endpoint as a node with these files gives it.
  RendezvousEndpoint SeenWith(const CertificateFiles& files) const {
    return {"localhost", endpoint.port, Trust::OfFiles(files).value()};
  }
};

// The only job of a Host is "job".
TEST_P(WithAToken, AJobsTokenIsGoodForThatJobAlone) {
  Host host(Policy(2, 2), GetParam().of(kToken).value());
  const auto seen_with = [&](const char* job) {
    const std::string token = MakeJobToken(kToken, job).value();
    return RendezvousEndpoint{"127.0.0.1", host.endpoint.port, GetParam().of(token).value()};
  };
  const auto expect_refused = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("for job 'other' alone, not for job 'job'"));
  };
  const RendezvousEndpoint other = seen_with("other");
  const Instant deadline = MonotonicClock().Now() + seconds(100);
  constexpr char kLine[] =
      "refused 127.0.0.1: its token is for job 'other' alone, and it asked for job 'job'";
  std::string said;
  // A process says such lines once in ten seconds, whichever test caused the last.
  while (!absl::StrContains(said, kLine) && MonotonicClock().Now() < deadline) {
    testing::internal::CaptureStderr();
    Member stranger(other, Node(0, 2, 2));
    expect_refused(stranger.AwaitEnd());
    stranger.Leave();
    said = testing::internal::GetCapturedStderr();
  }
  EXPECT_THAT(said, HasSubstr(kLine));
  expect_refused(ReportNodeDeath(other, "job", "id0", 1, "x", deadline));
  std::vector<std::unique_ptr<Member>> members;
  members.push_back(std::make_unique<Member>(seen_with("job"), Node(0, 2, 2)));
  members.push_back(std::make_unique<Member>(host.endpoint, Node(1, 2, 2)));  // The whole token.
  members[0]->Await(Kind::kRun);
  expect_refused(FetchStatus(other, "job", deadline).status());
  expect_refused(AskRanks(other, "job", {}).status());
  EXPECT_EQ(FetchStatus(other, "", deadline)->total, 0);
  for (const RendezvousEndpoint& mine : {seen_with("job"), host.endpoint}) {
    EXPECT_TRUE(FetchStatus(mine, "job", deadline).ok());
    EXPECT_TRUE(AskRanks(mine, "job", {}).ok());
    EXPECT_EQ(FetchStatus(mine, "", deadline)->total, 1);
  }
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, PassesOnWhatTheNodesOfARoundTellEachOther) {
  Host host(Policy(3, 3));
  const auto members = Join(host.endpoint, 3);
  for (const auto& member : members) member->Await(Kind::kRun);
  members[1]->Tell("from 1");
  const std::string large(kMaxRoundWordBytes, 'x');
  members[2]->Tell(large);
  members[0]->AwaitWord(2, large);
  const auto words = members[0]->AwaitWord(1, "from 1");
  members[0]->Tell("from 0");
  for (const size_t i : {1u, 2u}) {
    EXPECT_EQ(members[i]->AwaitWord(0, "from 0").size(), 1u) << "of other nodes";
  }
}

TEST(GrpcRendezvous, AsksRanksThroughTheirAgents) {
  Host host(Policy(2, 2), kToken);
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  RankQuestion question;
  question.kind = RankQuestion::Kind::kStacks;
  question.ranks = {0, 3};
  question.patience = seconds(60);
  for (int i = 0; i < 20; ++i) {  // Between updates and signs of life.
    members[0]->Send(Says(1, NodePhase::kRunning));
    const auto answer = AskRanks(host.endpoint, "job", question);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->world_size, 4);
    ASSERT_EQ(answer->nodes.size(), 2u);
    EXPECT_EQ(answer->nodes[0].text, "0,3");
    EXPECT_EQ(answer->nodes[1].text, "0,3");
  }
  members[1]->answers = false;
  question.patience = seconds(1);
  const auto answer = AskRanks(host.endpoint, "job", question);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->nodes[0].problem, "");
  EXPECT_EQ(answer->nodes[1].problem, "has not answered for 1 s");
  EXPECT_TRUE(absl::IsNotFound(AskRanks(host.endpoint, "other", question).status()));
  const RendezvousEndpoint stranger = {"127.0.0.1", host.endpoint.port,
                                       Trust::OfToken(kOtherToken).value()};
  EXPECT_TRUE(absl::IsPermissionDenied(AskRanks(stranger, "job", question).status()));
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, GivesAPlaceThatIsNotReachedNoTimeToAnswer) {
  Host host;
  const ListeningSocket mute = *Listen("127.0.0.1", 0);
  const auto left_at = [](const RendezvousEndpoint& endpoint, Instant deadline) {
    Duration left = Duration::zero();
    const absl::Status called =
        CallRendezvous(endpoint, deadline, std::chrono::hours(2), "status",
                       [&](v1::Rendezvous::Stub&, grpc::ClientContext* context) {
                         left = context->deadline() - std::chrono::system_clock::now();
                         return grpc::Status::OK;
                       });
    EXPECT_TRUE(called.ok()) << called;
    return left;
  };
  const Instant now = MonotonicClock().Now();
  EXPECT_GT(left_at(host.endpoint, now + seconds(100)), std::chrono::hours(1));
  EXPECT_LT(left_at({"127.0.0.1", mute.port, Trust()}, now), std::chrono::hours(1));
}

TEST(GrpcRendezvous, EndsWhileAQuestionIsOpen) {
  Host host;
  auto members = Join(host.endpoint, 1);
  members[0]->Await(Kind::kRun);
  members[0]->answers = false;
  RankQuestion question;
  question.patience = seconds(60);
  absl::Status status;
  std::thread asker([&] { status = AskRanks(host.endpoint, "job", question).status(); });
  while (host.rendezvous.open_questions() == 0) std::this_thread::yield();
  members[0]->Leave();
  host.server->Shutdown(milliseconds(10));
  asker.join();  // It returns long before the question's time limit.
}

TEST(GrpcRendezvous, NobodyServesWithAJobsToken) {
  JobRendezvous rendezvous(Host::RulesOf(Policy(1, 1)), MonotonicClock());
  const auto jobs = MakeOneJob("job", rendezvous);
  RendezvousServer::Options options;
  options.listener = std::move(Listen("127.0.0.1", 0)->fd);
  options.trust = Trust::OfToken(MakeJobToken(kToken, "job").value()).value();
  const auto server = RendezvousServer::Start(std::move(options), *jobs);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("'job' of a service alone"));
}

TEST(GrpcRendezvous, RunsAJobWithASitesCertificates) {
  const SiteAuthority site;
  SiteHost host(site.Write("service"), 2);
  host.endpoint = host.SeenWith(site.Write("node", "a-node"));
  auto members = Join(host.endpoint, 2);
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, TakesNewCertificatesWhileAJobRuns) {
  SiteHost host(SiteAuthority().Write("renewed_service"), 2);
  std::vector<std::unique_ptr<Member>> members;
  members.push_back(std::make_unique<Member>(host.endpoint, Node(0, 2, 2)));
  members.front()->Await(Kind::kWait);
  const SiteAuthority fresh;
  fresh.Write("renewed_service");
  members.push_back(
      std::make_unique<Member>(host.SeenWith(fresh.Write("fresh_node")), Node(1, 2, 2)));
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, SaysWhichEndHasWhichCertificates) {
  const SiteAuthority site;
  const CertificateFiles files = site.Write("guarded");
  SiteHost guarded(files);
  Host with_token(Policy(1, 1), kToken);
  Host open;
  const Trust certificates = Trust::OfFiles(files).value();
  const std::pair<RendezvousEndpoint, const char*> cases[] = {
      {guarded.SeenWith(SiteAuthority().Write("stranger")), "is not from an authority in --tls-ca"},
      {{"127.0.0.1", guarded.endpoint.port, certificates}, "does not name the host"},
      {{"localhost", guarded.endpoint.port, Trust::OfToken(kToken).value()},
       "demands certificates"},
      {{"localhost", guarded.endpoint.port, Trust()}, "this node has no token"},
      {{"localhost", with_token.endpoint.port, certificates}, "the rendezvous demands a token"},
      {{"localhost", open.endpoint.port, certificates}, "the rendezvous has none"},
  };
  for (const auto& [endpoint, words] : cases) {
    Member member(endpoint, Node(0, 1, 1));
    const absl::Status status = member.AwaitEnd();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    member.Leave();
  }
}

// TLS 1.3 tells a client only that the connection is closed.
TEST(GrpcRendezvous, ANodeWhoseCertificateIsNotBelievedIsToldWhichFileItMayBe) {
  const SiteAuthority site;
  SiteHost host(site.Write("strict"));
  CertificateFiles files = SiteAuthority().Write("foreign");
  files.authority = site.Write("known").authority;
  Member member(host.SeenWith(files), Node(0, 1, 1), seconds(2));
  EXPECT_THAT(std::string(member.AwaitEnd().message()), HasSubstr(files.certificate));
  member.Leave();
}

TEST(GrpcRendezvous, NamesTheDifferenceOfANodeThatDoesNotFit) {
  Host host(Policy(2, 2));
  Member first(host.endpoint, Node(0, 2, 2));
  first.Await(Kind::kWait);
  Member second(host.endpoint, Node(1, 3, 3));
  const absl::Status status = second.AwaitEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--nnodes 2"));
  second.Leave();
  first.Leave();
}

// InvalidArgument would tell the node that the endpoint's name is wrong.
TEST(GrpcRendezvous, TellsANodeThatSaysTheImpossibleThatItIsRefused) {
  Host host(Policy(1, 1));
  NodeInfo info = Node(0, 1, 1);
  info.node_rank = 7;
  Member member(host.endpoint, info);
  const absl::Status status = member.AwaitEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node rank 7 of node0"));
  member.Leave();
}

TEST(GrpcRendezvous, NamesBothProtocolsThatDiffer) {
  Host host;
  auto stub = v1::Rendezvous::NewStub(Line("127.0.0.1", host.endpoint.port, Trust()).channel());
  grpc::ClientContext context;
  auto stream = stub->Attach(&context);
  v1::AttachRequest request;
  *request.mutable_join() = ToProto(Node(0, 1, 1));
  *request.mutable_update() = ToProto(Says(0, NodePhase::kReady));
  request.mutable_join()->set_protocol(99);
  stream->Write(request);
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("protocol 99"));
}

TEST(GrpcRendezvous, RefusesAStreamThatDoesNotBeginWithJoin) {
  Host host;
  auto stub = v1::Rendezvous::NewStub(Line("127.0.0.1", host.endpoint.port, Trust()).channel());
  grpc::ClientContext context;
  auto stream = stub->Attach(&context);
  stream->Write(v1::AttachRequest());
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// As other releases may: this one served keys to agents once.
TEST(GrpcRendezvous, NamesTheCallThatItDoesNotServe) {
  Host host;
  const auto channel = Line("127.0.0.1", host.endpoint.port, Trust()).channel();
  const grpc::internal::RpcMethod method("/hlaunch.v1.Store/SetKeys",
                                         grpc::internal::RpcMethod::NORMAL_RPC, channel);
  grpc::ClientContext context;
  v1::GetStatusRequest request;
  request.set_job_id("job");
  v1::GetStatusResponse response;
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall<v1::GetStatusRequest, v1::GetStatusResponse>(
          channel.get(), method, &context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("does not serve /hlaunch.v1.Store/SetKeys"));
}

// The client end of a stream, which need not follow the rules of a client.
struct BareStream {
  explicit BareStream(const Host& host)
      : BareStream(Line("127.0.0.1", host.endpoint.port, Trust()).channel()) {}
  explicit BareStream(const std::shared_ptr<grpc::Channel>& channel)
      : stub(v1::Rendezvous::NewStub(channel)), stream(stub->Attach(&context)) {}

  void Join(const NodeInfo& info, NodePhase phase = NodePhase::kReady) {
    v1::AttachRequest request;
    *request.mutable_join() = ToProto(info);
    *request.mutable_update() = ToProto(Says(0, phase));
    EXPECT_TRUE(stream->Write(request));
  }

  std::unique_ptr<v1::Rendezvous::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AttachRequest, v1::AttachResponse>> stream;
};

TEST(GrpcRendezvous, EndsStreamsThatDoNotJoin) {
  Host host(Policy(1, 1), "", "127.0.0.1", nullptr, milliseconds(300));
  BareStream silent(host);
  BareStream later(host);
  EXPECT_EQ(silent.stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(later.stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  BareStream much_later(host);
  EXPECT_EQ(much_later.stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(GrpcRendezvous, AStreamThatHasJoinedMayBeSilentForLonger) {
  Host host(Policy(1, 1), "", "127.0.0.1", nullptr, seconds(2));
  BareStream joined(host);
  joined.Join(Node(0, 1, 1));
  BareStream silent(host);  // It connects later, so when it is gone, the other's time is up too.
  EXPECT_EQ(silent.stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(joined.stream->Write(v1::AttachRequest()));
  EXPECT_TRUE(joined.stream->WritesDone());
  v1::AttachResponse response;
  while (joined.stream->Read(&response)) {
  }
  EXPECT_TRUE(joined.stream->Finish().ok());
}

TEST(GrpcRendezvous, WarnsOfAnOpenPortOnlyIfANodeStays) {
  for (const NodePhase phase : {NodePhase::kLeft, NodePhase::kReady}) {
    testing::internal::CaptureStderr();
    {
      Host host(Policy(2, 2));
      BareStream node(host);
      node.Join(Node(1, 2, 2), phase);
      v1::AttachResponse answer;
      EXPECT_TRUE(node.stream->Read(&answer));
    }  // Now the server has said all that it says of this node.
    EXPECT_EQ(
        absl::StrContains(testing::internal::GetCapturedStderr(), "node1 joined without a token"),
        phase == NodePhase::kReady);
  }
}

TEST(GrpcRendezvous, RefusesAMessageThatNoNodeSends) {
  Host host;
  v1::AttachRequest request;
  request.mutable_join()->set_host(std::string(255 << 10, 'x'));
  request.mutable_update()->set_left_reason(std::string(255 << 10, 'x'));
  auto stub = v1::Rendezvous::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", host.endpoint.port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  auto stream = stub->Attach(&context);
  stream->Write(request);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(GrpcRendezvous, ANodeThatDoesNotReadIsNotAnsweredMore) {
  constexpr int kSigns = 20000;  // The most that an agent may send at once.
  Host host(Policy(2, 2));
  grpc::ChannelArguments arguments;  // Room for 512 answers of 8 bytes that nobody has read.
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4096);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  BareStream deaf(grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", host.endpoint.port),
                                            grpc::InsecureChannelCredentials(), arguments));
  deaf.Join(Node(0, 2, 2));
  for (int i = 0; i < kSigns; ++i) ASSERT_TRUE(deaf.stream->Write(v1::AttachRequest()));
  Member other(host.endpoint, Node(1, 2, 2));
  other.Await(Kind::kRun);
  int answers = 0;
  v1::AttachResponse response;
  bool told = false;
  while (deaf.stream->Read(&response)) {
    ++answers;
    if (told || !response.directive().has_run()) continue;
    told = true;
    EXPECT_TRUE(deaf.stream->WritesDone());  // Only now, since nobody tells a node that has left.
  }
  EXPECT_TRUE(told);
  EXPECT_LT(answers, kSigns / 2);  // Its window takes some; all the rest get one answer.
  other.Leave();
}

TEST(GrpcRendezvous, BrokenConnectionsBeginNoRound) {
  Host host(Policy(2, 2));
  TcpProxy proxy("127.0.0.1", host.endpoint.port);
  host.endpoint.port = proxy.port();
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  for (auto& member : members) member->Send(Says(1, NodePhase::kRunning));
  const int told[] = {members[0]->directives(), members[1]->directives()};
  proxy.DropConnections();
  for (int i = 0; i < 2; ++i) {
    const auto contacts = members[i]->AwaitContacts(3);
    EXPECT_TRUE(contacts[0].first);
    EXPECT_FALSE(contacts[1].first);
    EXPECT_TRUE(contacts[2].first);
    members[i]->AwaitDirectives(told[i] + 1);
    EXPECT_EQ(members[i]->Await(Kind::kRun).assignment.round, 1);
  }
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, GivesUpAfterTheLossLimit) {
  Host host(ShortLimits(1));
  TcpProxy proxy("127.0.0.1", host.endpoint.port);
  host.endpoint.port = proxy.port();
  const Instant begin = MonotonicClock().Now();
  Member member(host.endpoint, Node(0, 1, 1));
  member.Await(Kind::kRun);
  proxy.Swallow();
  const absl::Status status = member.AwaitEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("127.0.0.1:", proxy.port(), " for 1 s")));
  EXPECT_GE(MonotonicClock().Now() - begin, seconds(1));
  member.Leave();
}

// A kernel sends what a dead process left once the network is back.
TEST(GrpcRendezvous, AMessageFromBeforeASilenceIsAnsweredOnlyOnceTheNodeIsHeardNow) {
  JobPolicy policy = Policy(1, 1);
  policy.lease = {milliseconds(200), seconds(300), seconds(10)};
  Host host(policy);
  BareStream node(host);
  node.Join(Node(0, 1, 1));
  v1::AttachResponse response;
  uint64_t read = 0;
  const auto await = [&](const std::function<bool()>& done) {
    do {
      ASSERT_TRUE(node.stream->Read(&response));
      ++read;
    } while (!done());
  };
  await([&] { return response.directive().has_run(); });
  std::this_thread::sleep_for(milliseconds(500));
  v1::AttachRequest old;
  old.set_seen(0);
  EXPECT_TRUE(node.stream->Write(old));
  await([&] { return response.probe(); });
  EXPECT_EQ(response.heard(), 1U);  // The join.
  v1::AttachRequest fresh;
  fresh.set_seen(read);
  EXPECT_TRUE(node.stream->Write(fresh));
  await([&] { return response.heard() > 1; });
  EXPECT_EQ(response.heard(), 3U);
  EXPECT_TRUE(node.stream->WritesDone());
  while (node.stream->Read(&response)) {
  }
  EXPECT_TRUE(node.stream->Finish().ok());
}

TEST(GrpcRendezvous, ANodeLivesForTheLossLimitLongerByWhatWasTakenOfItElsewhere) {
  Host host(ShortLimits(1));
  TcpProxy proxy("127.0.0.1", host.endpoint.port);
  host.endpoint.port = proxy.port();
  GrpcRendezvousClient::Options options;
  options.endpoint = host.endpoint;
  options.taken_elsewhere = [] { return MonotonicClock().Now(); };
  Member member(Node(0, 1, 1), std::move(options));
  member.Await(Kind::kRun);
  proxy.Swallow();
  EXPECT_FALSE(member.EndsWithin(milliseconds(1500)));
  EXPECT_EQ(member.AwaitEnd().code(), absl::StatusCode::kDeadlineExceeded);
  member.Leave();
}

TEST(GrpcRendezvous, GoesAtOnceToTheLeaderThatItsProcessHasHeardOf) {
  Host former, leader;
  Member member(former.endpoint, Node(0, 1, 1));
  member.Await(Kind::kRun);
  const VoterMember there{9, "node1", HostPort("127.0.0.1", leader.endpoint.port)};
  const VoterMember here{8, "node0", HostPort("127.0.0.1", former.endpoint.port)};
  member.LedBy({there, here});
  const Instant until = MonotonicClock().Now() + seconds(100);
  while (!leader.rendezvous.Holds("id0", 1) && MonotonicClock().Now() < until) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(leader.rendezvous.Holds("id0", 1));
  member.Leave();
}

// Reads a node's first message and then only writes.
class DeafRendezvous final : public v1::Rendezvous::Service {
 public:
  grpc::Status Attach(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::AttachResponse, v1::AttachRequest>* stream) override {
    v1::AttachRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    v1::AttachResponse response;
    *response.mutable_policy() = ToProto(ShortLimits(2));
    response.set_heard(1);
    while (!context->IsCancelled() && stream->Write(response)) {
      std::this_thread::sleep_for(milliseconds(20));
    }
    return grpc::Status::OK;
  }
};

TEST(GrpcRendezvous, GivesUpThoughItHearsIfItIsNotHeard) {
  DeafRendezvous deaf;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(Trust()), &port);
  builder.RegisterService(&deaf);
  const auto server = builder.BuildAndStart();
  Member member({"127.0.0.1", static_cast<uint16_t>(port), Trust()}, Node(0, 2, 2));
  EXPECT_EQ(member.AwaitEnd().code(), absl::StatusCode::kDeadlineExceeded);
  member.Leave();
  server->Shutdown();
}

TEST(GrpcRendezvous, SignsOfLifeKeepAQuietNode) {
  JobPolicy policy = Policy(2, 2);
  policy.lease = {milliseconds(600), seconds(3), milliseconds(600)};
  Host host(policy);
  Member quiet(host.endpoint, Node(0, 2, 2));
  // The job still waits after the time in which a silent node would be given up.
  quiet.Await(Kind::kWait);
  EXPECT_FALSE(quiet.EndsWithin(milliseconds(4500)));
  EXPECT_EQ(quiet.AwaitContacts(1).size(), 1u);
  quiet.Leave();
}

TEST(GrpcRendezvous, AnDeathReportEndsTheRoundAtOnce) {
  Host host(Policy(2, 2));
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  EXPECT_TRUE(ReportNodeDeath(host.endpoint, "job", "id1", 2, "its agent was killed by signal 9",
                              MonotonicClock().Now() + seconds(100))
                  .ok());
  const Outcome outcome = members[0]->Await(Kind::kFinish).outcome;
  EXPECT_EQ(outcome.exit_code, kExitNodeLost);
  EXPECT_THAT(outcome.reason, HasSubstr("its agent was killed by signal 9"));
  EXPECT_EQ(members[1]->AwaitEnd().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReportNodeDeath(host.endpoint, "job", "id1", 2, "again",
                            MonotonicClock().Now() + seconds(100))
                .code(),
            absl::StatusCode::kAborted);
  for (auto& member : members) member->Leave();
}

TEST(GrpcRendezvous, TheLastWordArrivesThoughTheClientIsDestroyedAtOnce) {
  Host host(Policy(2, 2));
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  members[1]->Send(Says(1, NodePhase::kLeft));
  members[1]->Leave();
  EXPECT_EQ(members[0]->Await(Kind::kFinish).outcome.exit_code, kExitNodeStopped);
  members[0]->Leave();
}

TEST(GrpcRendezvous, ANodeMayComeBeforeItsRendezvous) {
  const ListeningSocket kept = Reserve(0).value();  // Nothing listens there yet.
  const RendezvousEndpoint endpoint = {"127.0.0.1", kept.port, Trust()};
  Member early(endpoint, Node(0, 1, 1));
  const auto contacts = early.AwaitContacts(1);
  EXPECT_FALSE(contacts[0].first);
  EXPECT_THAT(contacts[0].second,
              HasSubstr(absl::StrCat("127.0.0.1:", kept.port, ": Connection refused")));
  JobRendezvous rendezvous(Host::RulesOf(Policy(1, 1)), MonotonicClock());
  const auto jobs = MakeOneJob("job", rendezvous);
  RendezvousServer::Options options;
  options.listener = std::move(Listen("127.0.0.1", kept.port)->fd);
  auto server = RendezvousServer::Start(std::move(options), *jobs).value();
  EXPECT_EQ(early.Await(Kind::kRun).assignment.round, 1);
  early.Leave();
}

// Joins with this limit, and again with longer ones until the end is the one that is `sought`: a
// busy machine may need more time. If the first answer has a limit of its own, it is a sixth of
// this one. Gives up after a limit of more than a minute. Returns the last end and its limit.
std::pair<absl::Status, Duration> EndOfJoin(
    GrpcRendezvousClient::Options options, Duration limit,
    const std::function<bool(const absl::Status&)>& sought) {
  while (true) {
    options.join_timeout = limit;
    if (options.answer_timeout.has_value()) options.answer_timeout = limit / 6;
    Member member(Node(0, 1, 1), options);
    const absl::Status end = member.AwaitEnd();
    member.Leave();
    if (sought(end) || limit > seconds(60)) return {end, limit};
    limit *= 4;
  }
}

TEST(GrpcRendezvous, SaysThatNobodyAnswered) {
  const ListeningSocket kept = Reserve(0).value();
  GrpcRendezvousClient::Options options;
  options.endpoint = {"127.0.0.1", kept.port, Trust()};
  const auto [end, limit] = EndOfJoin(options, milliseconds(300), [](const absl::Status& status) {
    return absl::StrContains(status.message(), "refused");
  });
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
  EXPECT_THAT(std::string(end.message()),
              HasSubstr(absl::StrCat("within ", InSeconds(limit), " s: Connection refused")));
}

// Serves no job yet.
class NotYet final : public Jobs {
 public:
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo&, const NodeUpdate&) override {
    return absl::UnavailableError("the former run of job job is ending");
  }
  std::shared_ptr<JobRendezvous> Find(absl::string_view) override { return nullptr; }
  std::optional<JobStatus> Status(absl::string_view) override { return std::nullopt; }
  std::vector<JobStatus> List() override { return {}; }
};

TEST(GrpcRendezvous, ARendezvousThatSaysNotYetIsNoForeignProgram) {
  NotYet jobs;
  ListeningSocket socket = Listen("127.0.0.1", 0).value();
  GrpcRendezvousClient::Options options;
  options.endpoint = {"127.0.0.1", socket.port, Trust()};
  options.answer_timeout = milliseconds(50);
  RendezvousServer::Options serving;
  serving.listener = std::move(socket.fd);
  const auto server = RendezvousServer::Start(std::move(serving), jobs).value();
  const auto [end, limit] = EndOfJoin(options, milliseconds(300), [](const absl::Status& status) {
    return !absl::IsUnavailable(status);
  });
  EXPECT_EQ(end.code(), absl::StatusCode::kFailedPrecondition) << end;
  EXPECT_THAT(std::string(end.message()),
              HasSubstr(absl::StrCat("took this node not in within ", InSeconds(limit),
                                     " s: the former run of job job is ending")));
}

// Has a job and may lose the lead.
class Led final : public Jobs {
 public:
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo&, const NodeUpdate&) override {
    return job;
  }
  std::shared_ptr<JobRendezvous> Find(absl::string_view) override { return job; }
  std::optional<JobStatus> Status(absl::string_view) override { return std::nullopt; }
  std::vector<JobStatus> List() override { return {}; }

  std::atomic<bool> leads = true;
  std::shared_ptr<JobRendezvous> job = std::make_shared<JobRendezvous>(Rules(), MonotonicClock());

 private:
  JobRules Rules() {
    JobRules rules = Host::RulesOf(Policy(1, 1));
    rules.leads = [this] { return leads.load(); };
    return rules;
  }
};

TEST(GrpcRendezvous, AJobThatLosesItsLeadWithNewsToTellGoesWithItsServer) {
  Led jobs;
  ListeningSocket socket = Listen("127.0.0.1", 0).value();
  const RendezvousEndpoint endpoint{"127.0.0.1", socket.port, Trust()};
  RendezvousServer::Options serving;
  serving.listener = std::move(socket.fd);
  auto server = RendezvousServer::Start(std::move(serving), jobs).value();
  Member member(endpoint, Node(0, 1, 1));
  member.Await(Kind::kRun);
  jobs.leads = false;
  jobs.job->Say("nobody hears this");
  server.reset();
  const std::weak_ptr<JobRendezvous> job = std::exchange(jobs.job, nullptr);
  EXPECT_TRUE(job.expired());
  member.Leave();
}

TEST(GrpcRendezvous, SaysThatTheNameDoesNotResolve) {
  Member member({"no-such-host.invalid", 1, Trust()}, Node(0, 1, 1), milliseconds(1500));
  const auto contacts = member.AwaitContacts(1);
  EXPECT_FALSE(contacts[0].first);
  EXPECT_THAT(contacts[0].second, HasSubstr("cannot resolve 'no-such-host.invalid'"));
  const absl::Status status = member.AwaitEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-host.invalid"));
  member.Leave();
}

TEST(GrpcRendezvous, TakesTheDetourOnceThereIsOne) {
  Host host;
  GrpcRendezvousClient::Options options;
  options.endpoint = {"127.0.0.2", host.endpoint.port,
                      Trust()};  // Refused: the host listens on 127.0.0.1 only.
  std::atomic<bool> open = false;
  options.detour = [&open] {
    return open ? std::optional<std::string>("127.0.0.1") : std::nullopt;
  };
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_THAT(member.AwaitContacts(1)[0].second, HasSubstr("Connection refused"));
  EXPECT_FALSE(member.contacted());
  open = true;
  EXPECT_EQ(member.Await(Kind::kRun).assignment.round, 1);
  EXPECT_TRUE(member.contacted());
  member.Leave();
}

TEST(GrpcRendezvous, PrefersTheEndpointToTheDetour) {
  Host host;
  GrpcRendezvousClient::Options options;
  options.endpoint = host.endpoint;
  options.detour = [] { return std::optional<std::string>("127.0.0.2"); };
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_EQ(member.Await(Kind::kRun).assignment.round, 1);
  EXPECT_TRUE(member.contacts().empty() || member.contacts()[0].first);
  member.Leave();
}

TEST(GrpcRendezvous, TellsWhatTheResolverSaysAndAsksOnlyOnce) {
  Host host;
  GrpcRendezvousClient::Options options;
  options.endpoint = {"localhost", host.endpoint.port, Trust()};
  options.lookup = Lookup::Start("127.0.0.1");  // Not localhost's other addresses.
  Mutex mu;
  std::vector<Lookup::Result> heard;
  options.on_lookup = [&](const Lookup::Result& found) {
    MutexLock lock(&mu);
    heard.push_back(found);
  };
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_EQ(member.Await(Kind::kRun).assignment.round, 1);
  member.Leave();
  MutexLock lock(&mu);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_THAT(heard[0].value(), testing::ElementsAre("127.0.0.1"));
}

// Accepts connections and sends nothing, like a host that is cut off.
struct Mute {
  VoterMember AsVoter(const std::string& name) const {
    return {NewIncarnation(), name, absl::StrCat(address, ":", socket.port)};
  }

  std::string address = "127.0.0.1";
  ListeningSocket socket = Listen(address, 0).value();
};

TEST(GrpcRendezvous, FindsTheNewLeaderThoughTheFormerAndOthersAreSilent) {
  Host host;
  Mute former, second, third, fourth;
  GrpcRendezvousClient::Options options;
  options.endpoint = {former.address, former.socket.port, Trust()};
  const VoterMember leader{NewIncarnation(), "node4", HostPort("127.0.0.1", host.endpoint.port)};
  options.taken_up = {{milliseconds(400), seconds(9), seconds(5)},
                      MonotonicClock().Now(),
                      {former.AsVoter("node0"), second.AsVoter("node1"), third.AsVoter("node2"),
                       fourth.AsVoter("node3"), leader}};
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_EQ(member.Await(Kind::kRun).assignment.round, 1);
  member.Leave();
}

// It led, stood still for longer than the loss limit, and its place is not given away yet.
TEST(GrpcRendezvous, AsksTheNewLeaderAfterAPauseOfItsOwn) {
  Host host;
  GrpcRendezvousClient::Options options;
  options.endpoint = host.endpoint;
  const VoterMember leader{NewIncarnation(), "node1", HostPort("127.0.0.1", host.endpoint.port)};
  const Instant now = MonotonicClock().Now();
  options.taken_up = {
      {seconds(5), seconds(30), seconds(10)}, now - seconds(33), {leader}, now + seconds(5)};
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_EQ(member.Await(Kind::kRun).assignment.round, 1);
  member.Leave();
}

TEST(GrpcRendezvous, AnAddressOfAVoterIsNoneOfTheEndpoint) {
  Mute first, voter;
  voter.socket = Listen(voter.address = "127.0.0.9", 0).value();
  GrpcRendezvousClient::Options options;
  options.endpoint = {first.address, first.socket.port, Trust()};
  options.taken_up = {{milliseconds(100), seconds(1), seconds(1)},
                      MonotonicClock().Now(),
                      {voter.AsVoter("node1"), voter.AsVoter("node2")}};
  Mutex mu;
  std::vector<Lookup::Result> heard;
  options.on_lookup = [&](const Lookup::Result& found) {
    MutexLock lock(&mu);
    heard.push_back(found);
  };
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_EQ(member.AwaitEnd().code(), absl::StatusCode::kDeadlineExceeded);
  member.Leave();
  MutexLock lock(&mu);
  for (const Lookup::Result& found : heard) {
    EXPECT_THAT(found.value(), testing::ElementsAre(first.address));
  }
}

// A voter that stands by and tells where the others are.
class StandsBy final : public Jobs, public VoterPost {
 public:
  absl::Status CheckLeads() const override { return absl::UnavailableError("another one leads"); }
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo&, const NodeUpdate&) override {
    return CheckLeads();
  }
  std::shared_ptr<JobRendezvous> Find(absl::string_view) override { return nullptr; }
  std::optional<JobStatus> Status(absl::string_view) override { return std::nullopt; }
  std::vector<JobStatus> List() override { return {}; }
  absl::Status Hear(absl::string_view, VoterLetter) override { return absl::OkStatus(); }
  absl::StatusOr<std::string> Record(absl::string_view, Incarnation, const Ballot&) override {
    return absl::NotFoundError("there is none");
  }
  void ProvenDead(absl::string_view, Incarnation) override {}
  VoterMembers Places() const override { return places; }

  VoterMembers places;
};

TEST(GrpcRendezvous, NoVoterIsMadeBeforeItIsKnownWhatHoldsForTheJob) {
  Host host;
  StandsBy jobs;
  jobs.places = {{NewIncarnation(), "node1", HostPort("127.0.0.1", host.endpoint.port)}};
  ListeningSocket socket = Listen("127.0.0.1", 0).value();
  GrpcRendezvousClient::Options options;
  options.endpoint = {"127.0.0.1", socket.port, Trust()};
  std::atomic<int> told = 0;
  options.on_voters = [&told](const JobPolicy&, const VoterMembers&) { ++told; };
  RendezvousServer::Options serving;
  serving.listener = std::move(socket.fd);
  serving.voters = &jobs;
  const auto server = RendezvousServer::Start(std::move(serving), jobs).value();
  Member member(Node(0, 1, 1), std::move(options));
  EXPECT_EQ(member.Await(Kind::kRun).assignment.round, 1);  // The voter sent it here.
  member.Leave();
  EXPECT_EQ(told, 0);
}

// The host died before it had other voters, and was started again.
TEST(GrpcRendezvous, AJobWithoutALeaderIsOverForOneWhoseHostHasBegunItAnew) {
  Host anew(Policy(2, 2));
  Mute voter;
  GrpcRendezvousClient::Options options;
  options.endpoint = anew.endpoint;
  options.taken_up = {{milliseconds(200), seconds(2), seconds(1)},
                      MonotonicClock().Now(),
                      {voter.AsVoter("node1")}};
  Member member(Node(1, 2, 2), std::move(options), Says(1, NodePhase::kRunning));
  const absl::Status end = member.AwaitEnd();
  EXPECT_EQ(end.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(end.message()), HasSubstr("for 2 s: node1"));
  EXPECT_THAT(std::string(end.message()), HasSubstr("comes from round 1"));
  member.Leave();
}

TEST(GrpcRendezvous, SaysThatThereIsNoThreadToSpeakWithIt) {
  const Host host;
  std::optional<Member> member;
  {
    const NoThreads out_of_threads;
    member.emplace(host.endpoint, Node(0, 1, 1));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(member->AwaitEnd()));
}

TEST(GrpcRendezvous, GarbageHarmsOnlyItsOwnConnection) {
  Host host(Policy(2, 2));
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  std::vector<UniqueFd> vandals;
  for (const char* bytes :
       {"PRI garbage that is no preface", "GET / HTTP/1.1\r\n\r\n", "\x16\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"}) {
    vandals.push_back(Connect(host.endpoint.port));
    const std::string text = bytes;
    EXPECT_EQ(::send(vandals.back().get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, SharesItsPortWithTheStore) {
  auto store = C10dServer::Start(std::nullopt).value();
  Host host(Policy(1, 1), "", "127.0.0.1", store.get());
  auto members = Join(host.endpoint, 1);
  members[0]->Await(Kind::kRun);
  const UniqueFd client = Connect(host.endpoint.port);
  // VALIDATE, then PING with nonce 4660, which comes back.
  const std::string bytes("\0\xCE\xF7\x85\x3C\x0D\x34\x12\0\0", 10);
  ASSERT_EQ(::send(client.get(), bytes.data(), bytes.size(), 0), 10);
  char reply[4] = {};
  ASSERT_EQ(::recv(client.get(), reply, sizeof reply, MSG_WAITALL), 4);
  EXPECT_EQ(std::string(reply, 4), std::string("\x34\x12\0\0", 4));
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, ShutdownLeavesNoStreamWaiting) {
  Host host(Policy(2, 2));
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  host.rendezvous.End({.exit_code = 7, .reason = "enough", .failures = {}});
  // A thread that is inside a node's session tells it the end, maybe after End has returned. So a
  // host shuts down once its nodes have heard the end; these have, and do not confirm it.
  for (auto& member : members) EXPECT_EQ(member->Await(Kind::kFinish).outcome.exit_code, 7);
  const Instant begin = MonotonicClock().Now();
  host.server->Shutdown(seconds(200));
  EXPECT_LT(MonotonicClock().Now() - begin, seconds(100));
  for (auto& member : members) member->Leave();
}

TEST(GrpcRendezvous, ALiveHolderOfAPlaceAnswersAtOnceAndKeepsIt) {
  Host host(Policy(2, 2));
  auto members = Join(host.endpoint, 2);
  for (auto& member : members) member->Await(Kind::kRun);
  NodeInfo claimant = Node(1, 2, 2);
  claimant.incarnation = 99;
  Member second(host.endpoint, claimant);
  EXPECT_EQ(second.AwaitEnd().code(), absl::StatusCode::kAlreadyExists);
  second.Leave();
  RunToTheEnd(host, members);
}

TEST(GrpcRendezvous, TellsWhereAJobStands) {
  Host host(Policy(2, 2));
  Member member(host.endpoint, Node(0, 2, 2));
  member.Await(Kind::kWait);
  auto stub = v1::Rendezvous::NewStub(Line("127.0.0.1", host.endpoint.port, Trust()).channel());
  const auto ask = [&](const std::string& job_id, v1::GetStatusResponse* response) {
    grpc::ClientContext context;
    v1::GetStatusRequest request;
    request.set_job_id(job_id);
    return stub->GetStatus(&context, request, response).error_code();
  };
  v1::GetStatusResponse one, all, none;
  ASSERT_EQ(ask("job", &one), grpc::StatusCode::OK);
  ASSERT_EQ(one.jobs_size(), 1);
  EXPECT_EQ(one.jobs(0).explanation(), "waiting for 1 of 2 nodes; here: node0");
  ASSERT_EQ(one.jobs(0).nodes_size(), 1);
  EXPECT_EQ(one.jobs(0).nodes(0).host(), "node0");
  ASSERT_EQ(ask("", &all), grpc::StatusCode::OK);
  ASSERT_EQ(all.jobs_size(), 1);
  EXPECT_EQ(all.jobs(0).nodes_size(), 0);
  EXPECT_EQ(ask("other", &none), grpc::StatusCode::NOT_FOUND);
  member.Leave();
}

TEST(GrpcRendezvous, TwoHundredNodesJoin) {
  Host host(Policy(200, 200));
  auto members = Join(host.endpoint, 200);
  RunToTheEnd(host, members);
}

}  // namespace
}  // namespace hlaunch
