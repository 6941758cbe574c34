// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/rendezvous_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/question.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/round/values/drained_node.h"
#include "rendezvous/round/values/limits.h"
#include "rendezvous/round/values/master_address.h"
#include "rendezvous/rpc/ask_call.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/grpc_transport.h"
#include "rendezvous/rpc/stream_lobby.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {
namespace {

std::string NoSuchJob(absl::string_view job_id) {
  return absl::StrCat("there is no job '", ToUtf8(job_id, kMaxNameBytes), "' here");
}

// Shortens `job` for one line of a long list.
v1::JobStatus Brief(v1::JobStatus job) {
  job.set_explanation(ToUtf8(job.explanation(), kMaxNameBytes));
  job.clear_rounds();
  job.clear_failure();
  job.clear_notice();
  job.clear_excluded();
  return job;
}

// Removes the worker's output, which may show code.
void HideOutput(v1::JobStatus& job) {
  if (!job.has_failure()) return;
  job.mutable_failure()->clear_log_tail();
  job.mutable_failure()->clear_traceback();
  job.mutable_failure()->clear_message();
}

absl::Status CheckReport(const v1::ReportNodeDeathRequest& request) {
  for (const std::string* text : {&request.job_id(), &request.node_id(), &request.reason()}) {
    if (text->size() > kMaxTextBytes) return absl::InvalidArgumentError("a field is too long");
  }
  if (request.node_id().empty()) return absl::InvalidArgumentError("node_id is empty");
  if (request.incarnation() == 0) return absl::InvalidArgumentError("incarnation is 0");
  return absl::OkStatus();
}

}  // namespace

RendezvousService::RendezvousService(Jobs& jobs, bool open, const PeerJobs* peers,
                                     Duration patience, VoterPost* voters)
    : jobs_(jobs),
      open_(open),
      peers_(peers),
      voters_(voters),
      services_({jobs, peers, voters, std::make_shared<StreamLobby>(patience),
                 [this](const std::shared_ptr<AttachStream>& stream) { Strike(stream); },
                 [this](const NodeInfo& info) { WarnIfOpen(info); }}) {}

RendezvousService::~RendezvousService() { HLAUNCH_CHECK(open_streams() == 0); }

grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* RendezvousService::Attach(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<AttachStream>(services_, *context);
  Enlist(stream);
  stream->Begin();
  return stream.get();  // `streams_` keeps it until OnDone.
}

grpc::ServerUnaryReactor* RendezvousService::ReportNodeDeath(
    grpc::CallbackServerContext* context, const v1::ReportNodeDeathRequest* request,
    v1::ReportNodeDeathResponse* /*response*/) {
  absl::Status status = CheckReport(*request);
  if (status.ok()) status = CheckPeerMayUseJob(*context, peers_, request->job_id());
  if (status.ok() && voters_ != nullptr) {
    voters_->ProvenDead(request->job_id(), request->incarnation());
  }
  if (status.ok()) status = jobs_.CheckLeads();
  if (status.ok()) {
    const std::shared_ptr<JobRendezvous> job = jobs_.Find(request->job_id());
    status = job == nullptr ? absl::AbortedError(NoSuchJob(request->job_id()))
                            : job->ReportNodeDeath(request->node_id(), request->incarnation(),
                                                   request->reason());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RendezvousService::PassWitnessMessage(
    grpc::CallbackServerContext* context, const v1::PassWitnessMessageRequest* request,
    v1::PassWitnessMessageResponse* /*response*/) {
  absl::Status status = CheckPeerMayUseJob(*context, peers_, request->job_id());
  absl::StatusOr<VoterLetter> letter = FromProto(*request);
  if (status.ok()) status = letter.status();
  if (status.ok() && voters_ == nullptr) status = absl::NotFoundError("no voter is here");
  if (status.ok()) status = voters_->Hear(request->job_id(), *std::move(letter));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RendezvousService::GetWitnessRecord(
    grpc::CallbackServerContext* context, const v1::GetWitnessRecordRequest* request,
    v1::GetWitnessRecordResponse* response) {
  absl::Status status = CheckPeerMayUseJob(*context, peers_, request->job_id());
  if (status.ok() && voters_ == nullptr) status = absl::NotFoundError("no voter is here");
  if (status.ok()) {
    absl::StatusOr<std::string> record =
        voters_->Record(request->job_id(), request->from(), FromProto(request->ballot()));
    status = record.status();
    if (status.ok()) response->set_record(*std::move(record));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RendezvousService::GetStatus(grpc::CallbackServerContext* context,
                                                       const v1::GetStatusRequest* request,
                                                       v1::GetStatusResponse* response) {
  absl::Status status = jobs_.CheckLeads();
  if (!status.ok()) {
    // The status tells the caller which service leads.
  } else if (request->job_id().empty()) {
    for (const JobStatus& job : jobs_.List()) {
      if (!PeerMayUseJob(*context, peers_, job.job_id)) continue;
      if (response->jobs_size() < kMaxJobsShown) *response->add_jobs() = Brief(ToProto(job));
      response->set_total_jobs(response->total_jobs() + 1);
    }
    response->set_leader(ToUtf8(jobs_.leader(), kMaxNameBytes));
  } else if (status = CheckPeerMayUseJob(*context, peers_, request->job_id()); status.ok()) {
    const std::optional<JobStatus> job = jobs_.Status(request->job_id());
    response->set_total_jobs(1);
    if (job.has_value()) {
      *response->add_jobs() = ToProto(*job);
      if (!CheckTrusted(*context, "").ok()) HideOutput(*response->mutable_jobs(0));
    } else {
      status = absl::NotFoundError(NoSuchJob(request->job_id()));
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RendezvousService::AskRanks(grpc::CallbackServerContext* context,
                                                      const v1::AskRanksRequest* request,
                                                      v1::AskRanksResponse* response) {
  const absl::StatusOr<RankQuestion> question = FromProto(request->question());
  absl::Status status = question.status();
  if (status.ok()) status = jobs_.CheckLeads();
  if (status.ok()) status = CheckPeerMayUseJob(*context, peers_, request->job_id());
  if (status.ok() && question->kind == RankQuestion::Kind::kStacks) {
    status = CheckTrusted(*context, "stacks show code");
  }
  std::shared_ptr<JobRendezvous> job;
  if (status.ok()) {
    job = jobs_.Find(request->job_id());
    if (job == nullptr) status = absl::NotFoundError(NoSuchJob(request->job_id()));
  }
  if (status.ok()) return BeginAskCall(std::move(job), *question, response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RendezvousService::DrainNode(grpc::CallbackServerContext* context,
                                                       const v1::DrainNodeRequest* request,
                                                       v1::DrainNodeResponse* response) {
  const absl::StatusOr<DrainRequest> wanted = FromProto(*request);
  absl::Status status = wanted.status();
  if (status.ok()) status = jobs_.CheckLeads();
  if (status.ok()) status = CheckPeerMayUseJob(*context, peers_, request->job_id());
  if (status.ok()) status = CheckTrusted(*context, "draining takes a node from the job");
  if (status.ok()) {
    const std::shared_ptr<JobRendezvous> job = jobs_.Find(request->job_id());
    absl::StatusOr<std::string> follows = absl::NotFoundError(NoSuchJob(request->job_id()));
    if (job != nullptr) follows = job->Drain(*wanted);
    if (follows.ok()) response->set_explanation(ToUtf8(*follows, kMaxTextBytes));
    status = follows.status();
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

absl::Status RendezvousService::CheckTrusted(const grpc::CallbackServerContext& context,
                                             absl::string_view why) const {
  const std::string peer = PeerAddress(context.peer());
  if (!open_ || IsLoopback(peer) || IsOwnAddress(peer)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(why, ", and this rendezvous has no token: it does so for callers on its own ",
                   "host alone; ask there, or give the job a token (HLAUNCH_TOKEN, --token-file)"));
}

void RendezvousService::EndAll(const absl::Status& status) {
  {
    MutexLock lock(&mu_);
    ended_ = status;
  }
  EndOpen(status);
}

void RendezvousService::EndOpen(const absl::Status& status) {
  std::vector<std::shared_ptr<AttachStream>> open;
  {
    MutexLock lock(&mu_);
    open.assign(streams_.begin(), streams_.end());
  }
  for (const auto& stream : open) stream->End(status);
}

size_t RendezvousService::open_streams() const {
  MutexLock lock(&mu_);
  return streams_.size();
}

void RendezvousService::Enlist(const std::shared_ptr<AttachStream>& stream) {
  absl::Status ended;
  {
    MutexLock lock(&mu_);
    streams_.insert(stream);
    ended = ended_;
  }
  if (!ended.ok()) stream->End(ended);
}

void RendezvousService::Strike(const std::shared_ptr<AttachStream>& stream) {
  MutexLock lock(&mu_);
  streams_.erase(stream);
}

void RendezvousService::WarnIfOpen(const NodeInfo& info) {
  if (!open_ || IsLoopback(info.address)) return;
  {
    MutexLock lock(&mu_);
    if (std::exchange(warned_, true)) return;
  }
  LogWarning(absl::StrCat(info.host,
                          " joined without a token, so anyone who reaches this port may; "
                          "set HLAUNCH_TOKEN or --token-file on all nodes to allow only yours"));
}

}  // namespace hlaunch
