// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/grpc_store.h"

#include "rendezvous/grpc/rendezvous_server.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/trust/job_token.h"
#include "tests/rendezvous/no_threads.h"
#include "tests/rendezvous/rounds.h"
#include "tests/rendezvous/store_contract.h"

namespace hlaunch {
namespace store_contract {
namespace {

class SilentSession final : public JobRendezvous::Session {
 public:
  void OnDirective(const Directive&) override {}
  void OnEnd(const absl::Status&) override {}
};

// A rendezvous that serves on loopback, with a job "job" that node0 has joined.
struct Host {
  explicit Host(int nodes = 1, const std::string& secret = "")
      : Host(nodes, Trust::OfToken(secret).value()) {}
  Host(int nodes, Trust its) : trust(std::move(its)), rendezvous(RulesOf(nodes), MonotonicClock()) {
    ListeningSocket socket = Listen("127.0.0.1", 0).value();
    port = socket.port;
    Serve(std::move(socket));
    Join(0, nodes);
  }

  static JobRules RulesOf(int nodes) {
    JobRules rules;
    rules.job_id = "job";
    rules.policy = Policy(nodes, nodes, /*max_restarts=*/1);
    return rules;
  }

  void Serve(ListeningSocket socket) {
    RendezvousServer::Options options;
    options.listener = std::move(socket.fd);
    options.trust = trust;
    server = RendezvousServer::Start(std::move(options), *jobs).value();
  }

  void Join(int i, int nodes) {
    EXPECT_TRUE(rendezvous
                    .Attach(Node(i, nodes, nodes), Says(0, NodePhase::kReady), /*local=*/false,
                            std::make_shared<SilentSession>())
                    .ok());
  }

  GrpcStoreOptions OptionsOf(int i) const {
    GrpcStoreOptions options;
    options.address = "127.0.0.1";
    options.port = port;
    options.trust = trust;
    options.job_id = "job";
    options.node_id = Node(i, 1, 1).node_id;
    options.incarnation = Node(i, 1, 1).incarnation;
    options.request_timeout = 100s;
    return options;
  }
  std::unique_ptr<GrpcStore> StoreOf(int i) const { return *GrpcStore::Make(OptionsOf(i)); }

  const Trust trust;
  JobRendezvous rendezvous;
  std::unique_ptr<Jobs> jobs = MakeOneJob("job", rendezvous);
  uint16_t port = 0;
  std::unique_ptr<RendezvousServer> server;
};

TestedStore MakeGrpcStore() {
  const auto host = std::make_shared<Host>();
  const std::shared_ptr<GrpcStore> store = host->StoreOf(0);
  return {host, store, store, kSharedLimits};
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract, testing::Values(StoreKind{"GrpcStore", MakeGrpcStore}),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(All, WatchableStoreContract,
                         testing::Values(StoreKind{"GrpcStore", MakeGrpcStore}),
                         [](const auto& tested) { return tested.param.name; });

TEST(GrpcStore, IsSharedByTheNodesOfTheJob) {
  Host host(2);
  host.Join(1, 2);
  const auto first = host.StoreOf(0), second = host.StoreOf(1);
  auto value = std::async(std::launch::async, [&second] { return second->Get("k", In(100s)); });
  ASSERT_TRUE(first->Set("k", "v").ok());
  EXPECT_EQ(*value.get(), "v");
}

// `of` makes the trust of a token, with TLS or in clear text.
void RefusesAnotherJobsToken(absl::StatusOr<Trust> (*of)(absl::string_view token)) {
  constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
  Host host(1, of(kToken).value());
  GrpcStoreOptions options = host.OptionsOf(0);
  options.trust = of(MakeJobToken(kToken, "job").value()).value();
  EXPECT_TRUE((*GrpcStore::Make(options))->Set("k", "v").ok());
  options.trust = of(MakeJobToken(kToken, "other").value()).value();
  const auto other = *GrpcStore::Make(options);
  for (const absl::Status& status :
       {other->Set("k", "x"), other->Get("k", In(100s)).status(), other->Wait({"k"}, In(100s)),
        other->Check({"k"}).status(), other->Add("n", 1).status(),
        (*other->Watch(""))->Next(In(100s)).status()}) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  }
}

TEST(GrpcStore, RefusesAnotherJobsToken) { RefusesAnotherJobsToken(Trust::OfToken); }

TEST(GrpcStore, RefusesAnotherJobsTokenInClear) { RefusesAnotherJobsToken(Trust::OfTokenInClear); }

TEST(GrpcStore, RefusesWhoHoldsNoPlaceInTheJob) {
  Host host(1, "0123456789abcdef0123456789abcdef");
  EXPECT_TRUE(host.StoreOf(0)->Set("k", "v").ok());
  EXPECT_TRUE(absl::IsAborted(host.StoreOf(1)->Set("k", "v")));
  GrpcStoreOptions options = host.OptionsOf(0);
  ++options.incarnation;
  EXPECT_TRUE(absl::IsAborted((*GrpcStore::Make(options))->Wait({"k"}, In(100s))));
  EXPECT_TRUE(absl::IsAborted((*(*GrpcStore::Make(options))->Watch(""))->Next(In(100s)).status()));
  options = host.OptionsOf(0);
  options.job_id = "other";
  EXPECT_TRUE(absl::IsNotFound((*GrpcStore::Make(options))->Check({"k"}).status()));
  options = host.OptionsOf(0);
  options.trust = Trust::OfToken("fedcba9876543210fedcba9876543210").value();
  EXPECT_TRUE(absl::IsPermissionDenied((*GrpcStore::Make(options))->Get("k", In(100s)).status()));
}

TEST(GrpcStore, AWatchTooSaysThatTheTokenIsAnother) {
  Host host(1, "0123456789abcdef0123456789abcdef");
  GrpcStoreOptions options = host.OptionsOf(0);
  options.trust = Trust::OfToken("fedcba9876543210fedcba9876543210").value();
  const auto store = *GrpcStore::Make(options);
  const absl::Status end = (*store->Watch(""))->Next(In(100s)).status();
  EXPECT_TRUE(absl::IsPermissionDenied(end)) << end;
}

TEST(GrpcStore, SaysThatThereIsNoThreadForAWatch) {
  Host host;
  const auto store = host.StoreOf(0);
  ASSERT_TRUE(store->Set("k", "v").ok());  // The client is connected now.
  {
    const NoThreads out_of_threads;
    const absl::Status none = store->Watch("").status();
    EXPECT_TRUE(absl::IsResourceExhausted(none)) << none;
  }
  EXPECT_EQ((*store->Watch(""))->Next(In(100s))->size(), 1u);
}

TEST(GrpcStore, RefusesCallsOfAnotherRound) {
  Host host;  // Its one node has been told round 1.
  const auto store = host.StoreOf(0);
  store->SetRound(1);
  EXPECT_TRUE(store->Set("k", "v").ok());
  store->SetRound(2);
  const absl::Status early = store->Set("k", "w");
  EXPECT_TRUE(absl::IsAborted(early)) << early;
  EXPECT_THAT(std::string(early.message()), HasSubstr("round 2"));
  const NodeInfo node = Node(0, 1, 1);
  ASSERT_TRUE(
      host.rendezvous.Update(node.node_id, node.incarnation, Failed(1, Failure(0, 3))).ok());
  ASSERT_TRUE(
      host.rendezvous.Update(node.node_id, node.incarnation, Says(1, NodePhase::kReady)).ok());
  EXPECT_EQ(*store->Get("k", In(100s)), "v");  // Round 2 runs, and keys outlive rounds.
  store->SetRound(1);
  EXPECT_TRUE(absl::IsAborted(store->Set("k", "w")));
}

TEST(GrpcStore, EndsWithTheJob) {
  Host host;
  const auto store = host.StoreOf(0);
  ASSERT_TRUE(store->Set("k", "v").ok());
  const auto watch = *store->Watch("");
  ASSERT_TRUE(watch->Next(In(100s)).ok());
  auto waits = std::async(std::launch::async, [&store] { return store->Wait({"lost"}, In(100s)); });
  host.rendezvous.End({});
  EXPECT_TRUE(absl::IsFailedPrecondition(waits.get()));
  EXPECT_TRUE(absl::IsFailedPrecondition(watch->Next(In(100s)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Set("k", "v")));
}

TEST(GrpcStore, GivesUpWhenTheRendezvousIsGone) {
  Host host;
  const auto store = host.StoreOf(0);
  ASSERT_TRUE(store->Set("k", "v").ok());
  const auto watch = *store->Watch("");
  ASSERT_TRUE(watch->Next(In(100s)).ok());
  host.server.reset();
  EXPECT_TRUE(absl::IsUnavailable(store->Set("k", "w")));
  EXPECT_FALSE(watch->Next(In(100s)).ok());
}

// Reading calls wait while no server listens.
TEST(GrpcStore, WaitsForARendezvousThatComesBack) {
  Host host;
  const auto store = host.StoreOf(0);
  ASSERT_TRUE(store->Set("k", "v").ok());
  host.server.reset();
  auto value = std::async(std::launch::async, [&store] { return store->Get("k", In(100s)); });
  EXPECT_EQ(value.wait_for(50ms), std::future_status::timeout);
  host.Serve(Listen("127.0.0.1", host.port).value());
  const auto got = value.get();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "v");
}

TEST(GrpcStore, SaysWhatAddressItWants) {
  GrpcStoreOptions options;
  options.address = "node0";
  EXPECT_TRUE(absl::IsInvalidArgument(GrpcStore::Make(options).status()));
}

}  // namespace
}  // namespace store_contract
}  // namespace hlaunch
