// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/etcd/etcd_keeper.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/failover/etcd/etcd_process.h"
#include "tests/rendezvous/record_keeper_contract.h"
#include "tests/rendezvous/site_certificates.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

Instant Now() { return MonotonicClock().Now(); }

EtcdKeeper::Options At(uint16_t port, const std::string& prefix) {
  EtcdKeeper::Options options;
  options.cluster.members = {{"127.0.0.1", port}};
  options.prefix = prefix;
  options.name = "node0:29400";
  options.lease = seconds(30);
  options.last_word = seconds(20);
  return options;
}

// Retries until etcd serves.
absl::StatusOr<std::unique_ptr<EtcdKeeper>> LeadAt(const EtcdKeeper::Options& options) {
  const Instant deadline = Now() + seconds(60);
  auto keeper = EtcdKeeper::Lead(options);
  while (absl::IsUnavailable(keeper.status()) && Now() < deadline) {
    keeper = EtcdKeeper::Lead(options);
  }
  return keeper;
}

// A record with 75 incompressible bytes per node.
JobRecord LargeJob(const std::string& job_id, size_t nodes) {
  JobRecord record = KeptJob(job_id, 1);
  record.policy = Policy(static_cast<int>(nodes), static_cast<int>(nodes));
  record.members.assign(nodes, record.members[0]);
  std::mt19937 random(1);
  for (size_t i = 0; i < nodes; ++i) {
    std::string id(100, ' ');
    for (char& one : id) one = static_cast<char>('0' + random() % 64);
    record.members[i].info.node_id = id;
    record.members[i].node_rank = static_cast<int>(i);
  }
  return record;
}

// Deletes a key as a person would with etcdctl.
void Delete(const EtcdKeeper::Options& options, const std::string& key) {
  EtcdClient client(options.cluster);
  etcdserverpb::TxnRequest request;
  request.add_success()->mutable_request_delete_range()->set_key(key);
  etcdserverpb::TxnResponse response;
  const absl::Status done = client.Try(Now() + seconds(10), [&](const auto& member, auto* context) {
    return member.kv->Txn(context, request, &response);
  });
  EXPECT_TRUE(done.ok()) << done;
}

// One etcd for all tests; each test has its own prefix.
EtcdProcess& SharedEtcd() {
  static EtcdProcess etcd;
  return etcd;
}
std::string NewPrefix() {
  static std::atomic<int> count{0};
  return absl::StrCat("/test", ++count);
}

class InEtcd final : public KeepingPlace {
 public:
  absl::StatusOr<std::unique_ptr<RecordKeeper>> Lead() override {
    auto keeper = LeadAt(options_);
    if (!keeper.ok()) return keeper.status();
    return std::unique_ptr<RecordKeeper>(std::move(keeper).value());
  }
  bool TakeAway() override {
    Delete(options_, options_.prefix + "/leader");
    return true;
  }

 private:
  const EtcdKeeper::Options options_ = At(SharedEtcd().port(), NewPrefix());
};

INSTANTIATE_TEST_SUITE_P(
    Etcd, RecordKeeperContract,
    testing::Values(KeepingPlaceMaker{
        "etcd", [] { return EtcdProcess::CanRun() ? std::make_unique<InEtcd>() : nullptr; }}),
    [](const auto& maker) { return maker.param.name; });

class EtcdKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::CanRun()) GTEST_SKIP() << "etcd is not installed";
  }
};

TEST_F(EtcdKeeperTest, SaysWhoLeads) {
  const EtcdKeeper::Options options = At(SharedEtcd().port(), NewPrefix());
  const auto first = LeadAt(options);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = EtcdKeeper::Lead(options);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status()));
  EXPECT_EQ(second.status().message(), "node0:29400");
}

TEST_F(EtcdKeeperTest, TriesOneMemberAfterAnother) {
  EtcdKeeper::Options options = At(SharedEtcd().port(), NewPrefix());
  options.cluster.members.insert(options.cluster.members.begin(), {"127.0.0.1", 1});
  const auto keeper = LeadAt(options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  EXPECT_TRUE((*keeper)->Keep(KeptJob("a", 1), 0).ok());
}

TEST_F(EtcdKeeperTest, HasLostOnceEtcdIsSilentForTheLease) {
  const EtcdProcess etcd;
  EtcdKeeper::Options options = At(etcd.port(), NewPrefix());
  options.lease = seconds(2);
  const auto keeper = LeadAt(options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  etcd.Signal(SIGSTOP);
  while ((*keeper)->LeadsUntil() > Now()) ::usleep(10'000);
  etcd.Signal(SIGCONT);
  options.lease = seconds(30);
  // The loss is final, since another keeper may have led meanwhile.
  EXPECT_TRUE(absl::IsAborted((*keeper)->Keep(KeptJob("a", 1), 0).status()));
  EXPECT_LT((*keeper)->LeadsUntil(), Now());
  const auto next = [&] {
    auto again = LeadAt(options);
    while (absl::IsAlreadyExists(again.status())) again = LeadAt(options);
    return again;
  }();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE((*next)->Keep(KeptJob("a", 1), 0).ok());
}

TEST_F(EtcdKeeperTest, LeadsForLongerThanItsLeaseAndLeavesAtOnce) {
  EtcdKeeper::Options options = At(SharedEtcd().port(), NewPrefix());
  options.lease = seconds(15);
  {
    const auto keeper = LeadAt(options);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    const Instant first = (*keeper)->LeadsUntil();
    while (Now() < first + seconds(1)) ::usleep(10'000);
    EXPECT_GT((*keeper)->LeadsUntil(), Now());
    EXPECT_TRUE((*keeper)->Keep(KeptJob("a", 1), 0).ok());
  }
  EXPECT_TRUE(EtcdKeeper::Lead(options).ok());
}

TEST_F(EtcdKeeperTest, RefusesARecordThatEtcdWouldNotTake) {
  const auto keeper = LeadAt(At(SharedEtcd().port(), NewPrefix()));
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  const auto kept = (*keeper)->Keep(LargeJob("big", 25'000), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(kept.status())) << kept.status();
  EXPECT_THAT(std::string(kept.status().message()), HasSubstr("that of job big has "));
}

TEST_F(EtcdKeeperTest, NamesTheAlarmOfAFullDatabaseAndReadsOn) {
  const EtcdProcess etcd({"--quota-backend-bytes=200000"});
  const auto keeper = LeadAt(At(etcd.port(), NewPrefix()));
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  const JobRecord record = LargeJob("a", 500);
  absl::StatusOr<RecordVersion> kept = RecordVersion{0};
  RecordVersion version = 0;
  for (int i = 0; i < 100 && kept.ok(); ++i) {
    version = *kept;
    kept = (*keeper)->Keep(record, version);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(kept.status())) << kept.status();
  EXPECT_THAT(std::string(kept.status().message()), HasSubstr("NOSPACE"));
  EXPECT_EQ((*keeper)->List()->records.size(), 1u);
  EXPECT_GT((*keeper)->LeadsUntil(), Now());
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(EtcdKeeperTest, SpeaksTlsAndShowsACertificate) {
  const SiteAuthority authority;
  const CertificateFiles server =
      authority.Write("etcd", {"etcd", "critical,digitalSignature", "localhost"});
  const CertificateFiles own = authority.Write("service");
  const EtcdProcess etcd({"--cert-file=" + server.certificate, "--key-file=" + server.key,
                          "--trusted-ca-file=" + server.authority, "--client-cert-auth"},
                         /*tls=*/true);
  EtcdKeeper::Options options = At(etcd.port(), NewPrefix());
  options.cluster.members = {{"localhost", etcd.port()}};
  options.cluster.tls = true;
  options.cluster.authority = ContentOf(own.authority);
  options.cluster.certificate = ContentOf(own.certificate);
  options.cluster.key = ContentOf(own.key);
  const auto keeper = LeadAt(options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  EXPECT_TRUE((*keeper)->Keep(KeptJob("a", 1), 0).ok());
  // It trusts no certificate of another authority.
  EtcdKeeper::Options deceived = options;
  deceived.cluster.authority = ContentOf(SiteAuthority().Write("other").authority);
  EXPECT_TRUE(absl::IsUnavailable(EtcdKeeper::Lead(deceived).status()));
}

TEST_F(EtcdKeeperTest, SaysWhoItIsWithAPassword) {
  if (!std::filesystem::exists("/usr/bin/etcdctl")) GTEST_SKIP() << "etcdctl is not installed";
  const EtcdProcess etcd;
  EtcdKeeper::Options options = At(etcd.port(), NewPrefix());
  ASSERT_TRUE(LeadAt(options).ok());
  const auto etcdctl = [&](const std::string& words) {
    const std::string command = absl::StrCat(
        "ETCDCTL_API=3 etcdctl --endpoints 127.0.0.1:", etcd.port(), " ", words, " >/dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << words;
  };
  etcdctl("user add root:top");
  etcdctl("user add hlaunch:secret");
  etcdctl("role add hlaunch");
  etcdctl(absl::StrCat("role grant-permission --prefix hlaunch readwrite ", options.prefix, "/"));
  etcdctl("user grant-role hlaunch hlaunch");
  etcdctl("auth enable");
  EXPECT_FALSE(EtcdKeeper::Lead(options).ok());
  options.cluster.user = "hlaunch";
  options.cluster.password = "wrong";
  const absl::Status wrong = LeadAt(options).status();  // etcd checks a password slowly.
  EXPECT_TRUE(absl::IsPermissionDenied(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("does not let user hlaunch in"));
  EXPECT_THAT(std::string(wrong.message()), Not(HasSubstr("wrong")));
  options.cluster.password = "secret";
  options.lease = seconds(15);
  const auto keeper = LeadAt(options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  const Instant first = (*keeper)->LeadsUntil();
  while (Now() < first + seconds(1)) ::usleep(10'000);
  EXPECT_TRUE((*keeper)->Keep(KeptJob("a", 1), 0).ok());
  EXPECT_EQ((*keeper)->List()->records.size(), 1u);
  options.prefix = "/elsewhere";
  EXPECT_TRUE(absl::IsPermissionDenied(LeadAt(options).status()));
}

TEST_F(EtcdKeeperTest, ADamagedRecordStaysAndIsReplacedByTheNext) {
  const EtcdKeeper::Options options = At(SharedEtcd().port(), NewPrefix());
  const auto keeper = LeadAt(options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  EtcdClient client(options.cluster);
  etcdserverpb::TxnRequest request;
  auto* const put = request.add_success()->mutable_request_put();
  put->set_key(options.prefix + "/job/a");
  put->set_value("hlaunch-job 1 00000000 3\nabc");
  etcdserverpb::TxnResponse response;
  ASSERT_TRUE(client
                  .Try(Now() + seconds(10),
                       [&](const auto& member, auto* context) {
                         return member.kv->Txn(context, request, &response);
                       })
                  .ok());
  const auto listed = (*keeper)->List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->records, testing::IsEmpty());
  EXPECT_THAT(listed->warnings, testing::ElementsAre(HasSubstr("/job/a of etcd at 127.0.0.1:")));
  EXPECT_TRUE((*keeper)->Keep(KeptJob("a", 1), 0).ok());
  EXPECT_EQ((*keeper)->List()->records.size(), 1u);
}

}  // namespace
}  // namespace hlaunch
