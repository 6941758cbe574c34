// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/etcd/etcd_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "rendezvous/failover/etcd/packed_record.h"

namespace hlaunch {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::KeyValue;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;
using std::chrono::seconds;

constexpr Duration kPatience = seconds(5);      // For one call, over all members.
constexpr int64_t kPage = 100;                  // Records per page.
constexpr size_t kMaxRecordBytes = 1400 << 10;  // etcd takes requests of 1.5 MiB.
constexpr int kMarginShare = 5;                 // The margin is 1/5 of the lease: clocks may drift.
// Returns the first key behind all keys that begin with `prefix`. Requires: `prefix` does not end
// with 0xff.
std::string EndOf(std::string prefix) {
  ++prefix.back();
  return prefix;
}

void If(TxnRequest* txn, const std::string& key, Compare::CompareTarget target, int64_t number) {
  Compare* const compare = txn->add_compare();
  compare->set_target(target);
  compare->set_key(key);
  if (target == Compare::CREATE) {
    compare->set_create_revision(number);
  } else {
    compare->set_mod_revision(number);
  }
}

void ElseRead(TxnRequest* txn, const std::string& key) {
  txn->add_failure()->mutable_request_range()->set_key(key);
}

// Returns what the i-th ElseRead has read; all fields are 0 if there is nothing.
KeyValue ReadBy(const TxnResponse& response, int i) {
  if (i >= response.responses_size()) return {};
  const auto& range = response.responses(i).response_range();
  return range.kvs_size() == 0 ? KeyValue() : range.kvs(0);
}

EtcdClient::Call TxnCall(const TxnRequest& request, TxnResponse* response) {
  return [&request, response](const EtcdClient::Member& member, grpc::ClientContext* context) {
    response->Clear();
    return member.kv->Txn(context, request, response);
  };
}

// Another service leads. Its name may contain any bytes.
absl::Status Leads(const KeyValue& leader) {
  constexpr size_t kMaxName = 255;
  return absl::AlreadyExistsError(absl::CEscape(leader.value().substr(0, kMaxName)));
}

bool Forgotten(const JobRecord& record) {
  return record.state == JobState::kOver && record.members.empty();
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdKeeper>> EtcdKeeper::Lead(Options options) {
  std::shared_ptr<EtcdClient> client = options.client;
  if (client == nullptr) client = std::make_shared<EtcdClient>(options.cluster);
  std::unique_ptr<EtcdKeeper> keeper(new EtcdKeeper(std::move(options), std::move(client)));
  HLAUNCH_RETURN_IF_ERROR(keeper->BeginLease());
  HLAUNCH_RETURN_IF_ERROR(keeper->TakeLeadership());
  try {
    keeper->thread_ = std::thread([self = keeper.get()] {
      ::pthread_setname_np(::pthread_self(), "etcd-lease");
      self->KeepAlive();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for the lease in etcd: ", error.code().message()));
  }
  return keeper;
}

EtcdKeeper::~EtcdKeeper() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    stopped_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  EndLease();
}

// Begins no lease while another service leads, since standby services try often.
absl::Status EtcdKeeper::BeginLease() {
  etcdserverpb::RangeRequest read;
  read.set_key(LeaderKey());
  etcdserverpb::RangeResponse leader;
  HLAUNCH_RETURN_IF_ERROR(client_->Try(Now() + kPatience, [&](const auto& member, auto* context) {
    return member.kv->Range(context, read, &leader);
  }));
  if (leader.kvs_size() > 0) return Leads(leader.kvs(0));
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(std::max<int64_t>(1, options_.lease / seconds(1)));
  etcdserverpb::LeaseGrantResponse response;
  Instant sent;
  HLAUNCH_RETURN_IF_ERROR(client_->Try(Now() + kPatience, [&](const auto& member, auto* context) {
    sent = Now();
    return member.lease->LeaseGrant(context, request, &response);
  }));
  lease_ = response.id();
  MutexLock lock(&mu_);
  until_ = Instant::max();
  NoteLeaseLocked(sent, response.ttl());
  return absl::OkStatus();
}

absl::Status EtcdKeeper::TakeLeadership() {
  TxnRequest request;
  If(&request, LeaderKey(), Compare::CREATE, 0);
  auto* const put = request.add_success()->mutable_request_put();
  put->set_key(LeaderKey());
  put->set_value(options_.name);
  put->set_lease(lease_);
  ElseRead(&request, LeaderKey());
  TxnResponse response;
  HLAUNCH_RETURN_IF_ERROR(client_->Try(Now() + kPatience, TxnCall(request, &response)));
  if (response.succeeded()) {
    fence_ = response.header().revision();
    return absl::OkStatus();
  }
  const KeyValue leader = ReadBy(response, 0);
  if (leader.lease() != lease_) return Leads(leader);
  fence_ = leader.create_revision();  // An unanswered attempt was done.
  return absl::OkStatus();
}

// Revokes the lease, which also removes the leader's key.
void EtcdKeeper::EndLease() {
  if (lease_ == 0) return;
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease_);
  etcdserverpb::LeaseRevokeResponse response;
  client_
      ->Try(Now() + options_.last_word,
            [&](const auto& member, auto* context) {
              return member.lease->LeaseRevoke(context, request, &response);
            })
      .IgnoreError();
}

void EtcdKeeper::NoteLeaseLocked(Instant sent, int64_t ttl) {
  const Duration whole = seconds(ttl);
  until_ = sent + whole - whole / kMarginShare;
}

Instant EtcdKeeper::LeadsUntilLocked() const {
  if (Now() >= until_) {
    LoseLocked(
        "the lease was not renewed in time: etcd did not answer, or this process stood still");
  }
  return lost_ ? Instant() : until_;
}

Instant EtcdKeeper::LeadsUntil() const {
  MutexLock lock(&mu_);
  return LeadsUntilLocked();
}

bool EtcdKeeper::IsUnsure(const std::string& job_id) const {
  MutexLock lock(&mu_);
  return unsure_.count(job_id) > 0;
}

absl::Status EtcdKeeper::Lose(const std::string& why) {
  MutexLock lock(&mu_);
  LoseLocked(why);
  return absl::AbortedError(absl::StrCat(client_->words(), ": ", why));
}

// Logs the loss once.
void EtcdKeeper::LoseLocked(absl::string_view why) const {
  if (!std::exchange(lost_, true)) LogWarning(absl::StrCat(client_->words(), ": ", why));
}

void EtcdKeeper::KeepAlive() {
  const Duration pause = options_.lease / 3;
  while (Renew()) {
    const Instant next = Now() + pause;
    MutexLock lock(&mu_);
    while (!stop_ && Now() < next) stopped_.WaitUntil(&mu_, next);
    if (stop_) return;
  }
}

bool EtcdKeeper::Renew() {
  const Instant until = LeadsUntil();
  if (until == Instant()) return false;
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease_);
  etcdserverpb::LeaseKeepAliveResponse response;
  Instant sent;
  const absl::Status told = client_->Try(until, [&](const auto& member, auto* context) {
    {
      MutexLock lock(&mu_);
      if (stop_) return grpc::Status(grpc::StatusCode::NOT_FOUND, "not wanted any more");
    }
    sent = Now();
    const auto stream = member.lease->LeaseKeepAlive(context);
    const bool answered = stream->Write(request) && stream->Read(&response);
    if (answered) context->TryCancel();
    const grpc::Status status = stream->Finish();
    return answered ? grpc::Status::OK : status;
  });
  const bool mine = told.ok() && response.ttl() > 0 && HasLeaderKey(until);
  MutexLock lock(&mu_);
  // A late answer must not revive a lease that was reported as lost.
  if (stop_ || LeadsUntilLocked() == Instant()) return false;
  if (!mine) {
    LoseLocked(told.ok() ? "the lease has ended, or another leads"
                         : absl::StrCat("the lease is not renewed: ", told.message()));
    return false;
  }
  NoteLeaseLocked(sent, response.ttl());
  return true;
}

// A person may have deleted the leader's key; then the lease proves nothing.
bool EtcdKeeper::HasLeaderKey(Instant deadline) {
  etcdserverpb::RangeRequest read;
  read.set_key(LeaderKey());
  etcdserverpb::RangeResponse leader;
  const absl::Status told = client_->Try(deadline, [&](const auto& member, auto* context) {
    return member.kv->Range(context, read, &leader);
  });
  return told.ok() && leader.kvs_size() > 0 && leader.kvs(0).create_revision() == fence_;
}

absl::StatusOr<RecordKeeper::Listed> EtcdKeeper::List() {
  Listed listed;
  std::string from = JobPrefix();
  bool more = true;
  while (more) HLAUNCH_RETURN_IF_ERROR(ListPage(&from, &listed, &more));
  return listed;
}

absl::Status EtcdKeeper::ListPage(std::string* from, Listed* listed, bool* more) {
  TxnRequest request;
  If(&request, LeaderKey(), Compare::CREATE, fence_);
  auto* const range = request.add_success()->mutable_request_range();
  range->set_key(*from);
  range->set_range_end(EndOf(JobPrefix()));
  range->set_limit(kPage);
  TxnResponse response;
  HLAUNCH_RETURN_IF_ERROR(client_->Try(Now() + kPatience, TxnCall(request, &response)));
  if (!response.succeeded()) return Lose("another leads");
  const etcdserverpb::RangeResponse& page = response.responses(0).response_range();
  *more = page.more() && page.kvs_size() > 0;
  for (const KeyValue& kept : page.kvs()) {
    *from = kept.key() + '\0';
    const std::string job_id = kept.key().substr(JobPrefix().size());
    absl::StatusOr<JobRecord> record = UnpackRecord(kept.value());
    if (record.ok() && record->job_id == job_id) {
      listed->records.push_back(
          {std::move(record).value(), static_cast<RecordVersion>(kept.mod_revision())});
      continue;
    }
    const std::string what = absl::StrCat("the key ", kept.key(), " of ", client_->words());
    if (absl::IsFailedPrecondition(record.status())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot go on with ", what, ": ", record.status().message(),
          "; start the version that wrote it, or delete the key, which gives up its job"));
    }
    listed->warnings.push_back(absl::StrCat(
        "a job is lost: ", what, " is damaged (",
        record.ok() ? "it is a copy of another" : record.status().message(), "); it stays there"));
    MutexLock lock(&mu_);
    unsure_.insert(job_id);
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordVersion> EtcdKeeper::Keep(const JobRecord& record, RecordVersion expected) {
  const std::string key = JobPrefix() + record.job_id;
  const std::string value = Forgotten(record) ? "" : PackRecord(record);
  if (value.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat(client_->words(), " takes records of ",
                                                   kMaxRecordBytes >> 10, " KiB, and that of job ",
                                                   record.job_id, " has ", value.size() >> 10));
  }
  while (true) {
    const Instant until = LeadsUntil();
    if (until == Instant()) return Lose("the lease has run out");
    int unanswered = 0;
    const absl::StatusOr<Written> written = Write(key, value, expected, until, &unanswered);
    if (written.ok() && !written->done && !IsUnsure(record.job_id) && unanswered == 0) {
      // The stored record is not the one that this process knows. It gives up the lead, and the
      // next leader begins from there.
      return Lose(absl::StrCat("another changed the key ", key));
    }
    MutexLock lock(&mu_);
    if (unanswered > 0) unsure_.insert(record.job_id);
    if (!written.ok()) return written.status();
    if (written->done || written->same) {
      unsure_.erase(record.job_id);
      return written->version;
    }
    // This process wrote the stored record without getting an answer, or the record is damaged. The
    // new record replaces it.
    expected = written->version;
  }
}

absl::StatusOr<EtcdKeeper::Written> EtcdKeeper::Write(const std::string& key,
                                                      const std::string& value,
                                                      RecordVersion expected, Instant until,
                                                      int* unanswered) {
  TxnRequest request;
  If(&request, LeaderKey(), Compare::CREATE, fence_);
  If(&request, key, Compare::MOD, static_cast<int64_t>(expected));
  auto* const change = request.add_success();
  if (value.empty()) {
    change->mutable_request_delete_range()->set_key(key);
  } else {
    change->mutable_request_put()->set_key(key);
    change->mutable_request_put()->set_value(value);
  }
  ElseRead(&request, LeaderKey());
  ElseRead(&request, key);
  TxnResponse response;
  HLAUNCH_RETURN_IF_ERROR(
      client_->Try(std::min(until, Now() + kPatience), TxnCall(request, &response), unanswered));
  Written written;
  if (response.succeeded()) {
    written.done = true;
    written.version = value.empty() ? 0 : static_cast<RecordVersion>(response.header().revision());
    return written;
  }
  if (ReadBy(response, 0).create_revision() != fence_) return Lose("another leads");
  const KeyValue there = ReadBy(response, 1);
  written.version = static_cast<RecordVersion>(there.mod_revision());
  written.same = there.value() == value;
  return written;
}

}  // namespace hlaunch
