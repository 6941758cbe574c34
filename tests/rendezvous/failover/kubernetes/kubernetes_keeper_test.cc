// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/kubernetes_keeper.h"

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/failover/etcd/packed_record.h"
#include "rendezvous/net/trust/sealed_text.h"
#include "tests/rendezvous/failover/kubernetes/kube_api_process.h"
#include "tests/rendezvous/failover/kubernetes/real_api_process.h"
#include "tests/rendezvous/record_keeper_contract.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

Instant Now() { return MonotonicClock().Now(); }

// One server for all tests; each test has its own namespace.
KubeApiProcess& SharedApi() {
  static KubeApiProcess api;
  return api;
}

std::string NewNamespace() {
  static std::atomic<int> count{0};
  return absl::StrCat("test-", ++count);
}

KubernetesCandidate::Options In(const KubeApiProcess& api, const std::string& name_space) {
  KubernetesCandidate::Options options;
  options.server = api.Server();
  options.place.name_space = name_space;
  options.name = "node0:29400";
  return options;
}

absl::StatusOr<std::unique_ptr<RecordKeeper>> LeadOnce(
    const KubernetesCandidate::Options& options) {
  return KubernetesCandidate(options).Lead();
}

// A record with 75 incompressible bytes per node.
JobRecord LargeJob(const std::string& job_id, int nodes) {
  JobRecord record = KeptJob(job_id, 1);
  record.policy = Policy(nodes, nodes);
  record.members.assign(static_cast<size_t>(nodes), record.members[0]);
  std::mt19937 random(1);
  for (int i = 0; i < nodes; ++i) {
    std::string id(100, ' ');
    for (char& one : id) one = static_cast<char>('0' + random() % 64);
    record.members[static_cast<size_t>(i)].info.node_id = id;
    record.members[static_cast<size_t>(i)].node_rank = i;
  }
  return record;
}

class InKubernetes final : public KeepingPlace {
 public:
  // `admin` may delete the Lease.
  InKubernetes(KubernetesCandidate::Options options, ApiServer admin)
      : options_(std::move(options)), admin_(std::move(admin)) {}
  absl::StatusOr<std::unique_ptr<RecordKeeper>> Lead() override { return LeadOnce(options_); }
  bool TakeAway() override {
    ApiClient client(admin_);
    const auto done =
        client.Call({"DELETE", LeasePath(options_.place), "", ""}, Now() + seconds(60));
    EXPECT_EQ(done->status, 200);
    return true;
  }

 private:
  const KubernetesCandidate::Options options_;
  const ApiServer admin_;
};

std::unique_ptr<KeepingPlace> InOwn() {
  const KubernetesCandidate::Options options = In(SharedApi(), NewNamespace());
  return std::make_unique<InKubernetes>(options, options.server);
}

RealApiProcess& RealApi() {
  static RealApiProcess api;
  return api;
}

// All in one namespace, each with its own name.
KubernetesCandidate::Options InReal(const std::string& user) {
  KubernetesCandidate::Options options;
  options.server = RealApi().ServerFor(user);
  options.place = {"default", NewNamespace()};
  options.name = "node0:29400";
  return options;
}

std::unique_ptr<KeepingPlace> InReal() {
  if (!RealApiProcess::CanRun()) return nullptr;
  return std::make_unique<InKubernetes>(InReal("hlaunch"), RealApi().ServerFor("admin"));
}

INSTANTIATE_TEST_SUITE_P(Kubernetes, RecordKeeperContract,
                         testing::Values(KeepingPlaceMaker{"kubernetes", InOwn},
                                         KeepingPlaceMaker{"real", [] { return InReal(); }}),
                         [](const auto& maker) { return maker.param.name; });

class RealKubernetesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RealApiProcess::CanRun()) {
      GTEST_SKIP() << "opt-in: HLAUNCH_KUBE_BIN names no folder with kube-apiserver in it";
    }
  }
};

TEST_F(RealKubernetesTest, WhoLedBeforeBeginsNoJob) {
  const KubernetesCandidate::Options options = InReal("hlaunch");
  const auto first = LeadOnce(options);
  ASSERT_TRUE(first.ok()) << first.status();
  ApiClient admin(RealApi().ServerFor("admin"));
  EXPECT_EQ(admin.Call({"DELETE", LeasePath(options.place), "", ""}, Now() + seconds(60))->status,
            200);
  const auto second = LeadOnce(options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->List()->records.size(), 0u);
  EXPECT_TRUE(absl::IsAborted((*first)->Keep(KeptJob("a", 1), 0).status()));
  EXPECT_TRUE((*second)->Keep(KeptJob("a", 1), 0).ok());
}

TEST_F(RealKubernetesTest, ALeaseThatWasDeletedIsNotMadeAgain) {
  KubernetesCandidate::Options options = InReal("hlaunch");
  options.lease = seconds(2);
  const auto keeper = LeadOnce(options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  ApiClient admin(RealApi().ServerFor("admin"));
  const auto lease = [&](const char* method) {
    return admin.Call({method, LeasePath(options.place), "", ""}, Now() + seconds(60))->status;
  };
  EXPECT_EQ(lease("DELETE"), 200);
  while ((*keeper)->LeadsUntil() > Now()) ::usleep(10'000);
  EXPECT_EQ(lease("GET"), 404);
}

TEST_F(RealKubernetesTest, KeepsTheLargestJobAndManyMore) {
  const auto keeper = LeadOnce(InReal("hlaunch"));
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  const auto kept = (*keeper)->Keep(LargeJob("large", (*keeper)->max_nodes()), 0);
  EXPECT_TRUE(kept.ok()) << kept.status();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE((*keeper)->Keep(KeptJob(absl::StrCat("job", i), 1), 0).ok());
  }
  const Instant began = Now();
  EXPECT_EQ((*keeper)->List()->records.size(), 41u);
  const auto listed = Now() - began;
  std::printf("41 records listed in %d ms\n",
              static_cast<int>(std::chrono::duration_cast<milliseconds>(listed).count()));
}

TEST_F(RealKubernetesTest, NamesTheRuleThatTheRoleLacks) {
  const absl::Status refused = LeadOnce(InReal("nobody")).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("its Role in namespace default lacks the rule {apiGroups: "
                        "[\"coordination.k8s.io\"], resources: [leases], verbs: [get]}"));
}

class KubernetesKeeperTest : public testing::Test {
 protected:
  std::unique_ptr<RecordKeeper> Lead() {
    auto keeper = LeadOnce(options_);
    EXPECT_TRUE(keeper.ok()) << keeper.status();
    return keeper.ok() ? std::move(keeper).value() : nullptr;
  }
  std::string RecordPathOf(const std::string& job_id) const {
    return RecordPath(options_.place, RecordName(options_.place, job_id));
  }
  int StatusOf(const std::string& path) {
    ApiClient client(options_.server);
    const auto answer = client.Call({"GET", path, "", ""}, Now() + seconds(60));
    return answer.ok() ? answer->status : 0;
  }
  // Does what another leader would: PUTs the same record with another writer.
  void Steal(const std::string& job_id) {
    ApiClient client(options_.server);
    auto record =
        ReadRecord(client.Call({"GET", RecordPathOf(job_id), "", ""}, Now() + seconds(60))->body);
    record->writer = "another/7";
    EXPECT_EQ(client
                  .Call({"PUT", RecordPathOf(job_id), "", RecordBody(options_.place, *record)},
                        Now() + seconds(60))
                  ->status,
              200);
  }

  KubeApiProcess& api_ = SharedApi();
  KubernetesCandidate::Options options_ = In(api_, NewNamespace());
};

TEST_F(KubernetesKeeperTest, SaysWhoLeads) {
  const auto first = Lead();
  const auto second = LeadOnce(options_);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_EQ(second.status().message(), "node0:29400");
}

TEST_F(KubernetesKeeperTest, LeadsForLongerThanItsLeaseAndLeavesAtOnce) {
  options_.lease = seconds(15);
  {
    const auto keeper = Lead();
    const Instant first = keeper->LeadsUntil();
    while (Now() < first + seconds(1)) ::usleep(10'000);
    EXPECT_GT(keeper->LeadsUntil(), Now());
    EXPECT_TRUE(keeper->Keep(KeptJob("a", 1), 0).ok());
  }
  const auto next = LeadOnce(options_);
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST_F(KubernetesKeeperTest, TakesOverFromOneThatIsSilentAndKnowsOfNoOther) {
  const KubeApiProcess api("silent");
  options_ = In(api, "a");
  options_.lease = seconds(10);
  const auto first = Lead();
  const auto a = first->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok()) << a.status();
  // Cuts the first off: the server is unreachable for all.
  api.Tell(R"({"away": true})");
  while (first->LeadsUntil() > Now()) ::usleep(10'000);
  api.Tell(R"({"away": false})");
  KubernetesCandidate candidate(options_);
  auto second = candidate.Lead();
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();  // It came just now.
  while (absl::IsAlreadyExists(second.status())) second = candidate.Lead();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->List()->records.size(), 1u);
  // The loss is final, even if no other keeper led meanwhile.
  EXPECT_TRUE(absl::IsAborted(first->Keep(KeptJob("a", 2), *a).status()));
  EXPECT_LT(first->LeadsUntil(), Now());
}

TEST_F(KubernetesKeeperTest, WhoLedBeforeWritesNoRecordThatAnotherHasTouched) {
  const auto keeper = Lead();
  const auto a = keeper->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok()) << a.status();
  Steal("a");
  // By its own clock and lease the keeper still leads.
  ASSERT_GT(keeper->LeadsUntil(), Now());
  EXPECT_TRUE(absl::IsAborted(keeper->Keep(KeptJob("a", 2), *a).status()));
  EXPECT_LT(keeper->LeadsUntil(), Now());
}

TEST_F(KubernetesKeeperTest, WhoLedBeforeForgetsNoRecordThatAnotherHasTouched) {
  const auto keeper = Lead();
  const auto a = keeper->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok()) << a.status();
  Steal("a");
  EXPECT_TRUE(absl::IsAborted(keeper->Keep(ForgottenJob("a"), *a).status()));
  EXPECT_EQ(StatusOf(RecordPathOf("a")), 200);
}

TEST_F(KubernetesKeeperTest, WhoLedBeforeBeginsNoJob) {
  options_.lease = seconds(60);  // So the first does not look at its Lease meanwhile.
  const auto first = Lead();
  api_.Tell(R"({"delete": "leases/hlaunch"})");
  const auto second = Lead();
  EXPECT_EQ(second->List()->records.size(), 0u);
  // `first` does not know yet. The API server accepts a new object from any client.
  ASSERT_GT(first->LeadsUntil(), Now());
  EXPECT_TRUE(absl::IsAborted(first->Keep(KeptJob("a", 1), 0).status()));
  EXPECT_EQ(StatusOf(RecordPathOf("a")), 404);
  EXPECT_TRUE(second->Keep(KeptJob("a", 1), 0).ok());
}

TEST_F(KubernetesKeeperTest, KeepsWhatIsTriedAgainAfterALostAnswer) {
  const auto keeper = Lead();
  const auto lose = [&](const char* verb, const char* resource) {
    api_.Tell(absl::StrCat(R"({"fault": {"lose": true, "verb": ")", verb, R"(", "resource": ")",
                           resource, R"("}})"));
  };
  lose("POST", "configmaps");
  const auto a = keeper->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok()) << a.status();
  lose("PUT", "configmaps");
  const auto again = keeper->Keep(KeptJob("a", 2), *a);
  ASSERT_TRUE(again.ok()) << again.status();
  lose("PUT", "leases");
  ASSERT_TRUE(keeper->Keep(KeptJob("b", 1), 0).ok());
  const auto listed = keeper->List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->records.size(), 2u);
  EXPECT_EQ(listed->records[0].record.round + listed->records[1].record.round, 3);
  lose("DELETE", "configmaps");
  const KeptRecord& of_a =
      listed->records[0].record.job_id == "a" ? listed->records[0] : listed->records[1];
  const auto forgotten = keeper->Keep(ForgottenJob("a"), of_a.version);
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_EQ(keeper->List()->records.size(), 1u);
}

TEST_F(KubernetesKeeperTest, ComesAgainWhenItIsAskedTo) {
  const auto keeper = Lead();
  api_.Tell(
      R"({"fault": {"verb": "POST", "resource": "configmaps", "status": 429, "retry_after": 1}})");
  const Instant began = Now();
  EXPECT_TRUE(keeper->Keep(KeptJob("a", 1), 0).ok());
  EXPECT_GE(Now() - began, seconds(1));
}

TEST_F(KubernetesKeeperTest, ListsAnewWhenAPageIsNoMore) {
  const auto keeper = Lead();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(keeper->Keep(KeptJob(absl::StrCat("job", i), 1), 0).ok());
  }
  api_.Tell(R"({"fault": {"verb": "GET", "resource": "configmaps", "times": 1, "status": 410}})");
  EXPECT_EQ(keeper->List()->records.size(), 40u);
}

TEST_F(KubernetesKeeperTest, ReadsTheTokenThatTurnsOver) {
  const KubeApiProcess api("turns-over");
  options_ = In(api, "a");
  const auto keeper = Lead();
  WriteFile(api.TokenFile(), "second\n");
  EXPECT_TRUE(keeper->Keep(KeptJob("a", 1), 0).ok());
  KubernetesCandidate::Options wrong = options_;
  wrong.server.token_file = absl::StrCat(testing::TempDir(), "/wrong-", ::getpid(), ".token");
  WriteFile(wrong.server.token_file, "guessed\n");
  const absl::Status refused = LeadOnce(wrong).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(refused.ToString(),
              HasSubstr("it does not take the token in " + wrong.server.token_file));
  EXPECT_THAT(refused.ToString(), Not(HasSubstr("guessed")));
  wrong.server.token_file = "/nowhere/token";
  EXPECT_THAT(std::string(LeadOnce(wrong).status().message()),
              HasSubstr("cannot read /nowhere/token, the service account's token: No such file"));
}

TEST_F(KubernetesKeeperTest, NamesTheRuleThatTheRoleLacks) {
  const KubeApiProcess api("forbids");
  options_ = In(api, "train");
  api.Tell(R"({"forbid": ["create leases", "list configmaps"]})");
  EXPECT_THAT(std::string(LeadOnce(options_).status().message()),
              HasSubstr("its Role in namespace train lacks the rule {apiGroups: "
                        "[\"coordination.k8s.io\"], resources: [leases], verbs: [create]}"));
  api.Tell(R"({"forbid": ["list configmaps"]})");
  const auto keeper = Lead();
  const absl::Status listed = keeper->List().status();
  EXPECT_TRUE(absl::IsPermissionDenied(listed));
  EXPECT_THAT(std::string(listed.message()),
              HasSubstr("{apiGroups: [\"\"], resources: [configmaps], verbs: [list]}"));
}

TEST_F(KubernetesKeeperTest, BelievesNoOtherServer) {
  const auto trouble_with = [&](const ApiServer& server) {
    return ApiClient(server)
        .Call({"GET", LeasePath(options_.place), "", ""}, Now() + seconds(5))
        .status();
  };
  ApiServer deceived = options_.server;
  deceived.authority_file = SiteAuthority().Write(absl::StrCat("other-", ::getpid())).authority;
  const absl::Status told = trouble_with(deceived);
  EXPECT_TRUE(absl::IsUnavailable(told));
  EXPECT_THAT(told.ToString(), HasSubstr("its certificate is not believed"));
  deceived = options_.server;
  deceived.host = "127.0.0.1";  // The server has no certificate for that name.
  EXPECT_THAT(trouble_with(deceived).ToString(), HasSubstr("its certificate is not believed"));
}

TEST_F(KubernetesKeeperTest, KeepsWhatPeopleAddToAnObject) {
  options_.lease = seconds(60);  // So the keeper does not write the Lease itself meanwhile.
  const auto keeper = Lead();
  const auto a = keeper->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_THAT(api_.Told(), HasSubstr("\"hlaunch/job\": \"a\""));
  EXPECT_THAT(api_.Told(), HasSubstr("\"app.kubernetes.io/managed-by\": \"hlaunch\""));
  ApiClient client(options_.server);
  std::string body =
      client.Call({"GET", LeasePath(options_.place), "", ""}, Now() + seconds(60))->body;
  body.replace(body.find("\"labels\": {"), 11, "\"labels\": {\"site\": \"north\", ");
  ASSERT_EQ(client.Call({"PUT", LeasePath(options_.place), "", body}, Now() + seconds(60))->status,
            200);
  // It still leads: a person edited the Lease, but the holder is the same.
  EXPECT_TRUE(keeper->Keep(KeptJob("b", 1), 0).ok());
  EXPECT_THAT(api_.Told(), HasSubstr("\"site\": \"north\""));
}

TEST_F(KubernetesKeeperTest, ADamagedRecordStaysAndIsReplacedByTheNext) {
  const auto keeper = Lead();
  api_.Tell(absl::StrCat(
      R"({"put": {"kind": "ConfigMap", "metadata": {"namespace": ")", options_.place.name_space,
      R"(", "name": ")", RecordName(options_.place, "a"),
      R"(", "labels": {"app.kubernetes.io/managed-by": "hlaunch", )",
      R"("app.kubernetes.io/instance": "hlaunch"}}, "binaryData": {"record": "YWJj"}}})"));
  const auto listed = keeper->List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->records, testing::IsEmpty());
  EXPECT_THAT(listed->warnings, testing::ElementsAre(HasSubstr("a job is lost: the ConfigMap ")));
  EXPECT_TRUE(keeper->Keep(KeptJob("a", 1), 0).ok());
  EXPECT_EQ(keeper->List()->records.size(), 1u);
}

TEST_F(KubernetesKeeperTest, SealsRecordsByTheToken) {
  options_.key = RecordKeyOf("a token");
  JobRecord job = KeptJob("a", 1);
  job.comm_secret = "0123456789abcdef";
  {
    const auto keeper = Lead();
    ASSERT_TRUE(keeper->Keep(job, 0).ok());
    EXPECT_EQ(keeper->List()->records[0].record.comm_secret, job.comm_secret);
    ApiClient client(options_.server);
    const auto record =
        ReadRecord(client.Call({"GET", RecordPathOf("a"), "", ""}, Now() + seconds(60))->body);
    EXPECT_FALSE(UnpackRecord(record->packed).ok());
  }
  // A record that another key has sealed is not believed either.
  for (const std::string& other : {RecordKeyOf("another"), std::string()}) {
    options_.key = other;
    const auto listed = Lead()->List();
    ASSERT_TRUE(listed.ok()) << listed.status();
    EXPECT_THAT(listed->records, testing::IsEmpty());
    EXPECT_THAT(listed->warnings, testing::ElementsAre(HasSubstr("sealed by a")));
  }
  options_.key = RecordKeyOf("a token");
  EXPECT_EQ(Lead()->List()->records.size(), 1u);  // The record is still there.
}

TEST_F(KubernetesKeeperTest, RenewsInTimeThoughAnAnswerHangs) {
  const KubeApiProcess api("hangs");
  options_ = In(api, "a");
  options_.lease = seconds(15);
  const auto keeper = Lead();
  const Instant first = keeper->LeadsUntil();
  api.Tell(R"({"fault": {"verb": "PUT", "resource": "leases", "delay": 60}})");
  while (Now() < first + milliseconds(500)) ::usleep(10'000);
  EXPECT_GT(keeper->LeadsUntil(), Now());
}

TEST_F(KubernetesKeeperTest, KeepsTheLargestJobAndRefusesWhatDoesNotFit) {
  const auto keeper = Lead();
  const auto kept = keeper->Keep(LargeJob("large", keeper->max_nodes()), 0);
  EXPECT_TRUE(kept.ok()) << kept.status();
  const auto refused = keeper->Keep(LargeJob("larger", 3 * keeper->max_nodes()), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("that of job larger has "));
}

TEST_F(KubernetesKeeperTest, ServesManyJobsAtOnceAndKeepsItsLease) {
  options_.lease = seconds(15);
  const auto keeper = Lead();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      RecordVersion version = 0;
      for (Round round = 1; round <= 20; ++round) {
        const auto kept = keeper->Keep(KeptJob(absl::StrCat("job", i), round), version);
        failed += kept.ok() ? 0 : 1;
        version = kept.value_or(version);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(keeper->LeadsUntil(), Now());
}

TEST(LeaseSight, BelievesItsOwnClockAlone) {
  LeaseSight sight;
  LeaseObject lease;
  lease.holder = "a";
  lease.seconds = 10;
  lease.version = "1";
  lease.renewed = "1970-01-01T00:00:00.000000Z";  // The time by its host's clock.
  const Instant begin = Now();
  EXPECT_FALSE(sight.HasRunOut(lease, begin));
  EXPECT_FALSE(sight.HasRunOut(lease, begin + milliseconds(9'999)));
  lease.version = "2";
  EXPECT_FALSE(sight.HasRunOut(lease, begin + seconds(10)));
  EXPECT_FALSE(sight.HasRunOut(lease, begin + seconds(19)));
  EXPECT_TRUE(sight.HasRunOut(lease, begin + seconds(20)));
  lease.holder.clear();
  lease.version = "3";
  EXPECT_TRUE(sight.HasRunOut(lease, begin + seconds(20)));
}

TEST(RecordName, TellsJobsApartAndFitsKubernetes) {
  const ApiPlace place{"ns", "hlaunch"};
  EXPECT_EQ(RecordName(place, "a"), RecordName(place, "a"));
  EXPECT_NE(RecordName(place, "a"), RecordName(place, "A"));
  EXPECT_THAT(RecordName(place, "b/../c d%"),
              testing::MatchesRegex("hlaunch-b----c-d--[0-9a-f]{32}"));
  EXPECT_LT(RecordName(place, std::string(500, 'x')).size(), 100u);
}

}  // namespace
}  // namespace hlaunch
