// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/kubernetes_keeper.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"
#include "rendezvous/failover/etcd/packed_record.h"
#include "rendezvous/net/trust/sealed_text.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxRecordBytes = 1000 << 10;  // A ConfigMap takes 1 MiB.
constexpr int kPage = 16;                       // Records per page.
constexpr int kMostTries = 5;  // At a record that a former leader, which will soon notice, writes.

bool Forgotten(const JobRecord& record) {
  return record.state == JobState::kOver && record.members.empty();
}

bool Done(const ApiClient::Answer& answer) { return answer.status == 200 || answer.status == 201; }

}  // namespace

KubernetesKeeper::KubernetesKeeper(std::shared_ptr<ApiClient> client, ApiPlace place,
                                   std::string key, std::unique_ptr<HeldLease> lease)
    : client_(std::move(client)),
      place_(std::move(place)),
      key_(std::move(key)),
      lease_(std::move(lease)) {}

std::string KubernetesKeeper::place() const {
  return absl::StrCat(client_->words(), ", namespace ", place_.name_space);
}

std::string KubernetesKeeper::ObjectWords(const std::string& name) const {
  return absl::StrCat("the ConfigMap ", name, " in ", place());
}

absl::StatusOr<ApiClient::Answer> KubernetesKeeper::Call(const ApiClient::Request& request,
                                                         int* unanswered) {
  const Instant until = LeadsUntil();
  if (until == Instant()) return lease_->Lose("the lease has run out");
  return client_->Call(request, std::min(until, Now() + ApiClient::kPatience), unanswered);
}

// Confirms the lease before, so that a new leader is not disturbed, and afterwards, which proves
// that no other process has touched a record in between.
absl::StatusOr<RecordKeeper::Listed> KubernetesKeeper::List() {
  HLAUNCH_RETURN_IF_ERROR(lease_->Confirm());
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<RecordObject> records, ListAll());
  Listed listed;
  for (RecordObject& record : records) {
    HLAUNCH_RETURN_IF_ERROR(Adopt(std::move(record), &listed));
  }
  HLAUNCH_RETURN_IF_ERROR(lease_->Confirm());
  return listed;
}

absl::StatusOr<std::vector<RecordObject>> KubernetesKeeper::ListAll() {
  std::vector<RecordObject> records;
  std::string more;
  while (true) {
    HLAUNCH_ASSIGN_OR_RETURN(const auto answer, Call({"GET", RecordsPath(place_),
                                                      RecordsQuery(place_, kPage, more), ""}));
    if (answer.status == 410) {  // The next page has expired: begin again.
      records.clear();
      more.clear();
      continue;
    }
    HLAUNCH_ASSIGN_OR_RETURN(RecordPage page, ReadRecordPage(answer.body));
    std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
    more = std::move(page.more);
    if (more.empty()) return records;
  }
}

absl::Status KubernetesKeeper::Adopt(RecordObject record, Listed* listed) {
  if (record.writer == lease_->term()) return Note(record, listed);
  HLAUNCH_ASSIGN_OR_RETURN(const std::optional<RecordObject> touched, Touch(std::move(record)));
  return touched ? Note(*touched, listed) : absl::OkStatus();
}

// Writes the record unchanged, so that the former leader cannot write it any more.
absl::StatusOr<std::optional<RecordObject>> KubernetesKeeper::Touch(RecordObject record) {
  const std::string path = RecordPath(place_, record.name);
  for (int tries = 0; tries < kMostTries; ++tries) {
    record.writer = lease_->term();
    HLAUNCH_ASSIGN_OR_RETURN(const auto answer,
                             Call({"PUT", path, "", RecordBody(place_, record)}));
    if (Done(answer)) return ReadRecord(answer.body);
    HLAUNCH_ASSIGN_OR_RETURN(const auto there, Call({"GET", path, "", ""}));
    if (!Done(there)) return std::nullopt;
    HLAUNCH_ASSIGN_OR_RETURN(record, ReadRecord(there.body));
    if (record.writer == lease_->term()) return record;  // It was done; an answer was lost.
  }
  return absl::UnavailableError(absl::StrCat(ObjectWords(record.name), " changes all the time"));
}

// If there is a key, only sealed records are trusted, since others may be able to write here.
absl::StatusOr<JobRecord> KubernetesKeeper::Unpack(const RecordObject& record) const {
  if (key_.empty() && IsSealed(record.packed)) {
    return absl::DataLossError("it is sealed by a token, and this service has none");
  }
  if (key_.empty()) return UnpackRecord(record.packed);
  HLAUNCH_ASSIGN_OR_RETURN(const std::string packed, OpenText(key_, record.name, record.packed));
  return UnpackRecord(packed);
}

absl::Status KubernetesKeeper::Note(const RecordObject& record, Listed* listed) {
  absl::StatusOr<JobRecord> job = Unpack(record);
  const bool sound = job.ok() && RecordName(place_, job->job_id) == record.name;
  Known known = KnownOf(record.name);
  if (known.object.version != record.version || known.number == 0) known.number = NextNumber();
  known.object = record;
  known.object.packed.clear();
  if (sound) {
    listed->records.push_back({std::move(job).value(), known.number});
  } else if (absl::IsFailedPrecondition(job.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot go on with ", ObjectWords(record.name), ": ", job.status().message(),
                     "; start the version that wrote it, or delete it, which gives up its job"));
  } else {
    listed->warnings.push_back(absl::StrCat(
        "a job is lost: ", ObjectWords(record.name), " is damaged (",
        job.ok() ? "it is a copy of another" : job.status().message(), "); it stays there"));
    known.number = 0;
    known.unsure = true;
  }
  Remember(record.name, std::move(known));
  return absl::OkStatus();
}

absl::StatusOr<RecordVersion> KubernetesKeeper::Keep(const JobRecord& record,
                                                     RecordVersion expected) {
  RecordObject wanted;
  wanted.name = RecordName(place_, record.job_id);
  wanted.job_id = record.job_id;
  wanted.writer = lease_->term();
  if (!Forgotten(record)) {
    wanted.packed = PackRecord(record);
    if (!key_.empty()) wanted.packed = SealText(key_, wanted.name, wanted.packed);
    if (wanted.packed.empty()) return absl::InternalError("OpenSSL seals no record");
  }
  if (wanted.packed.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(place(), " takes records of ", kMaxRecordBytes >> 10, " KiB, and that of job ",
                     record.job_id, " has ", wanted.packed.size() >> 10));
  }
  Known known = KnownOf(wanted.name);
  if (known.number != expected) {
    return absl::AbortedError(absl::StrCat("another changed ", ObjectWords(wanted.name)));
  }
  return Replace(std::move(wanted), std::move(known), expected);
}

absl::StatusOr<RecordVersion> KubernetesKeeper::Replace(RecordObject wanted, Known known,
                                                        RecordVersion expected) {
  while (true) {
    if (known.unsure) HLAUNCH_RETURN_IF_ERROR(Reread(wanted.name, &known));
    wanted.metadata = known.object.metadata;
    wanted.version = known.object.version;
    int unanswered = 0;
    const auto answer = Write(wanted, &unanswered);
    if (unanswered > 0) {
      known.unsure = true;
      Remember(wanted.name, known);
    }
    if (!answer.ok()) return answer.status();
    const bool gone = answer->status == 404 && wanted.packed.empty();
    if (Done(*answer) || gone) return Finish(wanted, *answer, expected == 0);
    // The stored record is not the one that this process knows. Unless this process wrote it itself
    // without getting an answer, it gives up the lead; the next leader begins from there.
    if (!known.unsure) {
      return lease_->Lose(absl::StrCat("another changed ", ObjectWords(wanted.name)));
    }
  }
}

absl::Status KubernetesKeeper::Reread(const std::string& name, Known* known) {
  HLAUNCH_ASSIGN_OR_RETURN(const auto answer, Call({"GET", RecordPath(place_, name), "", ""}));
  known->object = RecordObject();
  if (!Done(answer)) return absl::OkStatus();
  HLAUNCH_ASSIGN_OR_RETURN(known->object, ReadRecord(answer.body));
  known->object.packed.clear();
  if (known->object.writer == lease_->term()) return absl::OkStatus();
  return lease_->Lose(absl::StrCat("another changed ", ObjectWords(name)));
}

absl::StatusOr<ApiClient::Answer> KubernetesKeeper::Write(const RecordObject& wanted,
                                                          int* unanswered) {
  const std::string path = RecordPath(place_, wanted.name);
  const bool is_there = !wanted.metadata.empty();
  if (!wanted.packed.empty()) {
    return Call({is_there ? "PUT" : "POST", is_there ? path : RecordsPath(place_), "",
                 RecordBody(place_, wanted)},
                unanswered);
  }
  if (!is_there) return ApiClient::Answer{404, ""};
  return Call({"DELETE", path, "", DeleteBody(wanted)}, unanswered);
}

// Kubernetes cannot refuse a former leader's write of a new object, and the new leader may have
// listed all records before this object existed. So such a write counts only if the lease is
// confirmed after it.
absl::StatusOr<RecordVersion> KubernetesKeeper::Finish(const RecordObject& wanted,
                                                       const ApiClient::Answer& answer,
                                                       bool begins) {
  Known known;
  if (!wanted.packed.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(known.object, ReadRecord(answer.body));
    known.object.packed.clear();
    if (begins) {
      const absl::Status held = lease_->Confirm();
      if (absl::IsAborted(held)) {
        client_
            ->Call({"DELETE", RecordPath(place_, wanted.name), "", DeleteBody(known.object)},
                   Now() + ApiClient::kPatience)
            .IgnoreError();
      }
      known.unsure = !held.ok();
      if (!held.ok()) Remember(wanted.name, known);
      HLAUNCH_RETURN_IF_ERROR(held);
    }
    known.number = NextNumber();
  }
  if (LeadsUntil() == Instant()) return lease_->Lose("the lease has run out");
  return Remember(wanted.name, std::move(known));
}

KubernetesKeeper::Known KubernetesKeeper::KnownOf(const std::string& name) const {
  MutexLock lock(&mu_);
  const auto found = known_.find(name);
  return found == known_.end() ? Known() : found->second;
}

RecordVersion KubernetesKeeper::Remember(const std::string& name, Known known) {
  const RecordVersion number = known.number;
  MutexLock lock(&mu_);
  if (known.object.metadata.empty() && !known.unsure) {
    known_.erase(name);
  } else {
    known_[name] = std::move(known);
  }
  return number;
}

RecordVersion KubernetesKeeper::NextNumber() {
  MutexLock lock(&mu_);
  return ++last_number_;
}

KubernetesCandidate::KubernetesCandidate(Options options)
    : options_(std::move(options)),
      client_(std::make_shared<ApiClient>(options_.server)),
      holder_(absl::StrCat(options_.name, "_", absl::Hex(NewIncarnation()))) {}

absl::StatusOr<std::unique_ptr<RecordKeeper>> KubernetesCandidate::Lead() {
  HLAUNCH_ASSIGN_OR_RETURN(
      auto lease, HeldLease::Take(client_, options_.place, holder_, options_.lease, sight_));
  return std::unique_ptr<RecordKeeper>(
      std::make_unique<KubernetesKeeper>(client_, options_.place, options_.key, std::move(lease)));
}

}  // namespace hlaunch
