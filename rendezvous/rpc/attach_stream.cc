// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/attach_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/status.h"
#include "proto/base/release.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/round/values/master_address.h"
#include "rendezvous/rpc/convert.h"

namespace hlaunch {
namespace {

absl::Status CheckRelease(const std::string& host, const std::string& release) {
  const std::string why = WhyReleaseIsTooFar(release, "the rendezvous", kRelease);
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(host, " ", why));
}

}  // namespace

void AttachStream::Begin() {
  guest_ = services_.lobby->Enter(shared_from_this());
  StartRead(&request_);
}

void AttachStream::End(const absl::Status& status) {
  {
    MutexLock lock(&mu_);
    if (!end_.has_value()) end_ = status;
  }
  Pump();
}

void AttachStream::OnDirective(const Directive& directive) {
  {
    MutexLock lock(&mu_);
    pending_.Put(directive);
  }
  Pump();
}

void AttachStream::OnProbe() {
  {
    MutexLock lock(&mu_);
    pending_.Probe();
  }
  Pump();
}

void AttachStream::OnQuestion(const NodeQuestion& question) {
  {
    MutexLock lock(&mu_);
    pending_.Put(question);
  }
  Pump();
}

void AttachStream::OnWord(const RoundWord& word) {
  {
    MutexLock lock(&mu_);
    pending_.Put(word);
  }
  Pump();
}

void AttachStream::OnReadDone(bool ok) {
  if (!ok) {
    // Either the stream is half-closed, and all that the node sent was taken; or it is broken,
    // and the node does not get this status.
    Leave();
    return End(absl::OkStatus());
  }
  ++read_;
  if (const absl::Status status = Take(); !status.ok()) return End(status);
  if (last_word_) return End(absl::OkStatus());
  request_ = v1::AttachRequest();  // Frees the memory: thousands of streams may be idle.
  StartRead(&request_);
}

void AttachStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mu_);
    busy_ = false;
    response_ = v1::AttachResponse();
    if (!ok && !end_.has_value()) end_ = absl::CancelledError("the stream broke");
  }
  Pump();
}

void AttachStream::OnDone() {
  LeaveLobby();
  Leave();
  job_.reset();  // The job may hold this stream for ever, if it had news when it lost its lead.
  services_.on_done(shared_from_this());
}

absl::Status AttachStream::Take() {
  if (job_ == nullptr) return Join();
  HLAUNCH_RETURN_IF_ERROR(job_->CheckLeads());
  const bool counts = job_->Counts(node_id_, incarnation_, AgeOfRequest());
  if (request_.has_answer()) {
    HLAUNCH_ASSIGN_OR_RETURN(NodeAnswer answer, FromProto(request_.answer()));
    if (!job_->Answer(node_id_, incarnation_, std::move(answer), counts)) {
      return absl::OkStatus();
    }
  } else if (request_.has_word()) {
    HLAUNCH_ASSIGN_OR_RETURN(RoundWord word, FromProto(request_.word()));
    if (!job_->Tell(node_id_, incarnation_, std::move(word), counts)) return absl::OkStatus();
  } else if (request_.has_update()) {
    HLAUNCH_ASSIGN_OR_RETURN(const NodeUpdate update, FromProto(request_.update()));
    TakeLastWord(update);
    HLAUNCH_RETURN_IF_ERROR(job_->Update(node_id_, incarnation_, update, counts));
  } else if (counts && !job_->Heard(node_id_, incarnation_)) {
    return absl::OkStatus();
  }
  if (counts) Answer();
  return absl::OkStatus();
}

Duration AttachStream::AgeOfRequest() {
  if (!request_.has_seen()) return Duration::zero();
  MutexLock lock(&mu_);
  return pending_.AgeOfMessage(request_.seen(), MonotonicClock().Now());
}

void AttachStream::TakeLastWord(const NodeUpdate& update) {
  last_word_ = update.phase == NodePhase::kFinished;
  MutexLock lock(&mu_);
  if (last_word_ && !end_.has_value()) end_ = absl::OkStatus();
}

absl::Status AttachStream::Join() {
  LeaveLobby();
  if (!request_.has_join() || !request_.has_update()) {
    return absl::InvalidArgumentError("the first message of a stream sets join and update");
  }
  HLAUNCH_ASSIGN_OR_RETURN(NodeInfo info, FromProto(request_.join()));
  HLAUNCH_RETURN_IF_ERROR(CheckPeerMayUseJob(context_, services_.peers, info.job_id));
  HLAUNCH_RETURN_IF_ERROR(CheckRelease(info.host, request_.join().release()));
  HLAUNCH_ASSIGN_OR_RETURN(const NodeUpdate update, FromProto(request_.update()));
  if (!peer_.empty()) {
    info.route_address = LocalAddressTowards(peer_).value_or("");
    info.seen_address = peer_;
    // The address is wrong if the node took the rendezvous' name for its own host (a NAT, a
    // tunnel).
    if (IsLoopback(info.address) && !IsLoopback(peer_)) info.address = peer_;
  }
  HLAUNCH_RETURN_IF_ERROR(CheckLeads());
  TakeLastWord(update);  // Even if its job is not known any more.
  HLAUNCH_ASSIGN_OR_RETURN(job_, services_.jobs.Open(info, update));
  node_id_ = info.node_id;
  incarnation_ = info.incarnation;
  HLAUNCH_RETURN_IF_ERROR(job_->Attach(info, update, /*local=*/false, shared_from_this()));
  // A node that comes only to say why it cannot start takes no part in the job.
  if (update.phase != NodePhase::kLeft) services_.on_joined(info);
  Answer();
  return absl::OkStatus();
}

absl::Status AttachStream::CheckLeads() {
  const absl::Status leads = services_.jobs.CheckLeads();
  MutexLock lock(&mu_);
  pending_.Redirect(!leads.ok() && services_.voters != nullptr);
  return leads;
}

void AttachStream::Answer() {
  {
    MutexLock lock(&mu_);
    pending_.Answer(read_);
  }
  Pump();
}

void AttachStream::LeaveLobby() {
  if (guest_) services_.lobby->Leave(*std::exchange(guest_, std::nullopt));
}

void AttachStream::Leave() {
  if (job_ != nullptr) job_->Detach(node_id_, this);
}

void AttachStream::Pump() {
  std::optional<grpc::Status> finish;
  VoterMembers voters;
  if (services_.voters != nullptr) voters = services_.voters->Places();
  {
    MutexLock lock(&mu_);
    const bool news = !pending_.empty();
    if (busy_ || !(news || end_.has_value())) return;
    busy_ = true;  // For good, if this is the end.
    const bool broken = end_.has_value() && absl::IsCancelled(*end_);
    if (!broken && news) {
      response_.Clear();
      pending_.Pack(job_ == nullptr ? nullptr : &job_->policy(), voters, MonotonicClock().Now(),
                    &response_);
    } else {
      finish = ToGrpcStatus(*end_);
    }
  }
  // Only the thread that set busy_ gets here, and gRPC ends the stream only after Finish.
  if (finish.has_value()) {
    Finish(*finish);
  } else {
    StartWrite(&response_);
  }
}

}  // namespace hlaunch
