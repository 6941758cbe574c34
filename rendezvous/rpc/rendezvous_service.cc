// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/rendezvous_service.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/alarm.h"
#include "proto/base/log.h"
#include "proto/base/release.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/round/values/master_address.h"
#include "rendezvous/rpc/ask_call.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/grpc_transport.h"

namespace hlaunch {
namespace {

// The limit of streams that have not joined; beyond it the oldest is ended. A whole cluster may
// connect at once.
constexpr size_t kMaxInLobby = 16384;
constexpr size_t kMostWordBytes = 1 << 20;  // In one response.
constexpr size_t kMostUnseen = 64;          // Responses of a stream; older ones prove less.

bool SamePlace(const VoterMember& a, const VoterMember& b) {
  return a.incarnation == b.incarnation && a.address == b.address;
}

absl::Status CheckRelease(const std::string& host, const std::string& release) {
  const std::string why = WhyReleaseIsTooFar(release, "the rendezvous", kRelease);
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(host, " ", why));
}

}  // namespace

// One alarm is enough, since all streams have the same patience.
struct RendezvousService::Lobby : std::enable_shared_from_this<Lobby> {
  using Place = std::pair<Instant, const AttachStream*>;  // When a stream's time is up.

  explicit Lobby(Duration the_patience) : patience(the_patience) {}

  Place Enter(const std::shared_ptr<AttachStream>& stream) ABSL_LOCKS_EXCLUDED(mu);
  void Leave(const Place& place) ABSL_LOCKS_EXCLUDED(mu);
  void Sweep() ABSL_LOCKS_EXCLUDED(mu);
  void SetAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const Duration patience;
  Mutex mu;
  std::map<Place, std::shared_ptr<AttachStream>> guests ABSL_GUARDED_BY(mu);
  std::unique_ptr<grpc::Alarm> alarm ABSL_GUARDED_BY(mu);  // Set from a guest until it rings.
};

// One agent's stream: a reactor for gRPC, a session for the rendezvous. Both own it: the service
// until gRPC is done with it, the rendezvous until the node is detached.
//
// Thread-safe. Reading belongs to OnReadDone and, after all reads, OnDone. Writes and the end go
// through Pump: the thread that finds the stream idle starts the next operation, so at most one is
// under way and a slow client costs one directive.
class AttachStream final : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>,
                           public JobRendezvous::Session,
                           public std::enable_shared_from_this<AttachStream> {
 public:
  // gRPC keeps `context` for as long as the stream lives.
  AttachStream(RendezvousService& service, const grpc::CallbackServerContext& context)
      : service_(service), context_(context), peer_(PeerAddress(context.peer())) {}

  void Begin() {
    guest_ = service_.lobby_->Enter(shared_from_this());
    StartRead(&request_);
  }

  void End(const absl::Status& status) {
    {
      MutexLock lock(&mu_);
      if (!end_.has_value()) end_ = status;
    }
    Pump();
  }

  // From the rendezvous.
  void OnDirective(const Directive& directive) override {
    {
      MutexLock lock(&mu_);
      directive_ = directive;
    }
    Pump();
  }
  void OnProbe() override {
    {
      MutexLock lock(&mu_);
      probe_ = true;
    }
    Pump();
  }
  void OnQuestion(const NodeQuestion& question) override {
    {
      MutexLock lock(&mu_);
      questions_.push_back(question);
      if (questions_.size() > kMaxQuestions) questions_.pop_front();  // The oldest one.
    }
    Pump();
  }
  void OnWord(const RoundWord& word) override {
    {
      MutexLock lock(&mu_);
      words_[word.node_rank] = word;
    }
    Pump();
  }
  void OnEnd(const absl::Status& status) override { End(status); }

  // From gRPC.
  void OnReadDone(bool ok) override {
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
  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mu_);
      busy_ = false;
      response_ = v1::AttachResponse();
      if (!ok && !end_.has_value()) end_ = absl::CancelledError("the stream broke");
    }
    Pump();
  }
  void OnCancel() override { End(absl::CancelledError("the stream broke")); }
  void OnDone() override {
    LeaveLobby();
    Leave();
    job_.reset();  // The job may hold this stream for ever, if it had news when it lost its lead.
    service_.Strike(shared_from_this());
  }

 private:
  // Unpacks the message and makes one call to the rendezvous. An error ends the stream.
  absl::Status Take() {
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

  // Returns how old the request is at most: it was made after the last response that the node had
  // read. Zero if the node does not say which that was.
  Duration AgeOfRequest() {
    if (!request_.has_seen()) return Duration::zero();
    MutexLock lock(&mu_);
    while (!responses_.empty() && responses_.front().first <= request_.seen()) {
      seen_at_ = responses_.front().second;
      responses_.pop_front();
    }
    return MonotonicClock().Now() - seen_at_;
  }

  // A node that has sent kFinished gets OK, even from a rendezvous that shuts down because it
  // waited only for this message.
  void TakeLastWord(const NodeUpdate& update) {
    last_word_ = update.phase == NodePhase::kFinished;
    MutexLock lock(&mu_);
    if (last_word_ && !end_.has_value()) end_ = absl::OkStatus();
  }

  absl::Status Join() {
    LeaveLobby();
    if (!request_.has_join() || !request_.has_update()) {
      return absl::InvalidArgumentError("the first message of a stream sets join and update");
    }
    HLAUNCH_ASSIGN_OR_RETURN(NodeInfo info, FromProto(request_.join()));
    HLAUNCH_RETURN_IF_ERROR(CheckPeerMayUseJob(context_, service_.peers_, info.job_id));
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
    HLAUNCH_ASSIGN_OR_RETURN(job_, service_.jobs_.Open(info, update));
    node_id_ = info.node_id;
    incarnation_ = info.incarnation;
    HLAUNCH_RETURN_IF_ERROR(job_->Attach(info, update, /*local=*/false, shared_from_this()));
    // A node that comes only to say why it cannot start takes no part in the job.
    if (update.phase != NodePhase::kLeft) service_.WarnIfOpen(info);
    Answer();
    return absl::OkStatus();
  }

  // A node that comes to a voter that stands by is told where the others are.
  absl::Status CheckLeads() {
    const absl::Status leads = service_.jobs_.CheckLeads();
    MutexLock lock(&mu_);
    redirects_ = !leads.ok() && service_.voters_ != nullptr;
    return leads;
  }

  // Every message is answered: that is how the node knows it was heard.
  void Answer() {
    {
      MutexLock lock(&mu_);
      answer_ = true;
      heard_ = read_;
    }
    Pump();
  }

  void LeaveLobby() {
    if (guest_) service_.lobby_->Leave(*std::exchange(guest_, std::nullopt));
  }

  void Leave() {
    if (job_ != nullptr) job_->Detach(node_id_, this);
  }

  void Pump() {
    std::optional<grpc::Status> finish;
    VoterMembers voters;
    if (service_.voters_ != nullptr) voters = service_.voters_->Places();
    {
      MutexLock lock(&mu_);
      const bool news = directive_.has_value() || answer_ || probe_ || redirects_ ||
                        !questions_.empty() || !words_.empty();
      if (busy_ || !(news || end_.has_value())) return;
      busy_ = true;  // For good, if this is the end.
      const bool broken = end_.has_value() && absl::IsCancelled(*end_);
      if (!broken && news) {
        PackLocked(voters);
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

  void PackLocked(const VoterMembers& voters) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    response_.Clear();
    responses_.emplace_back(++written_, MonotonicClock().Now());
    if (responses_.size() > kMostUnseen) responses_.pop_front();
    if (!std::exchange(redirects_, false) && !std::exchange(policy_sent_, true)) {
      *response_.mutable_policy() = ToProto(job_->policy());
    }
    if (voters.size() != told_.size() ||
        !std::equal(told_.begin(), told_.end(), voters.begin(), SamePlace)) {
      for (const VoterMember& one : voters) *response_.add_voters() = ToProto(one);
      told_ = voters;
    }
    if (std::exchange(probe_, false)) response_.set_probe(true);
    response_.set_heard(heard_);
    if (directive_.has_value()) *response_.mutable_directive() = ToProto(*directive_);
    for (const NodeQuestion& question : std::exchange(questions_, {})) {
      *response_.add_questions() = ToProto(question);
    }
    for (size_t bytes = 0; !words_.empty();) {
      bytes += words_.begin()->second.text.size();
      if (bytes > kMostWordBytes) break;  // The rest comes in the next response.
      *response_.add_words() = ToProto(words_.extract(words_.begin()).mapped());
    }
    directive_.reset();
    answer_ = false;
  }

  RendezvousService& service_;
  const grpc::CallbackServerContext& context_;
  const std::string peer_;                                // The peer's address; empty if unknown.
  std::optional<RendezvousService::Lobby::Place> guest_;  // Until the first message.
  v1::AttachRequest request_;
  std::shared_ptr<JobRendezvous> job_;  // Null until joined; set before the job knows the session.
  std::string node_id_;                 // Set like job_.
  Incarnation incarnation_ = 0;
  bool last_word_ = false;  // The node said kFinished.

  Mutex mu_;
  v1::AttachResponse response_;  // Belongs to the thread that set busy_.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool policy_sent_ ABSL_GUARDED_BY(mu_) = false;
  bool probe_ ABSL_GUARDED_BY(mu_) = false;
  bool answer_ ABSL_GUARDED_BY(mu_) = false;
  bool redirects_ ABSL_GUARDED_BY(mu_) = false;  // Only the voters are told.
  VoterMembers told_ ABSL_GUARDED_BY(mu_);       // The voters that the node knows of.
  uint64_t read_ = 0;                        // Messages that were read; only for the reading side.
  uint64_t heard_ ABSL_GUARDED_BY(mu_) = 0;  // Messages that are answered.
  uint64_t written_ ABSL_GUARDED_BY(mu_) = 0;  // Responses.
  // The numbers of the responses that the node has not shown to have read, and when each was made;
  // and when the last one was made that it has read.
  std::deque<std::pair<uint64_t, Instant>> responses_ ABSL_GUARDED_BY(mu_);
  Instant seen_at_ ABSL_GUARDED_BY(mu_) = MonotonicClock().Now();
  std::optional<Directive> directive_ ABSL_GUARDED_BY(mu_);  // The latest one, if not sent yet.
  std::deque<NodeQuestion> questions_ ABSL_GUARDED_BY(mu_);  // Questions that were not sent yet.
  std::map<int, RoundWord> words_ ABSL_GUARDED_BY(mu_);      // As JobRendezvous has them.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

RendezvousService::Lobby::Place RendezvousService::Lobby::Enter(
    const std::shared_ptr<AttachStream>& stream) {
  const Place place(MonotonicClock().Now() + patience, stream.get());
  std::shared_ptr<AttachStream> oldest;
  {
    MutexLock lock(&mu);
    guests.emplace(place, stream);
    if (guests.size() > kMaxInLobby) oldest = guests.extract(guests.begin()).mapped();
    if (alarm == nullptr) SetAlarm();
  }
  if (oldest != nullptr) {
    oldest->End(absl::UnavailableError("too many streams that have not joined"));
  }
  return place;
}

void RendezvousService::Lobby::Leave(const Place& place) {
  MutexLock lock(&mu);
  guests.erase(place);
}

void RendezvousService::Lobby::SetAlarm() {
  const Duration left = guests.begin()->first.first - MonotonicClock().Now();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  alarm = std::make_unique<grpc::Alarm>();  // An alarm that rings cannot be set again.
  alarm->Set(::gpr_time_add(::gpr_now(GPR_CLOCK_MONOTONIC),
                            ::gpr_time_from_micros(micros + 1, GPR_TIMESPAN)),
             [weak = weak_from_this()](bool rang) {
               const std::shared_ptr<Lobby> lobby = rang ? weak.lock() : nullptr;
               if (lobby != nullptr) lobby->Sweep();
             });
}

// Called when the alarm rings.
void RendezvousService::Lobby::Sweep() {
  std::vector<std::shared_ptr<AttachStream>> late;
  {
    MutexLock lock(&mu);
    const Instant now = MonotonicClock().Now();
    while (!guests.empty() && guests.begin()->first.first <= now) {
      late.push_back(guests.extract(guests.begin()).mapped());
    }
    alarm.reset();
    if (!guests.empty()) SetAlarm();
  }
  for (const auto& stream : late) {
    stream->End(absl::DeadlineExceededError("no join came in time"));
  }
}

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
      lobby_(std::make_shared<Lobby>(patience)) {}

RendezvousService::~RendezvousService() { HLAUNCH_CHECK(open_streams() == 0); }

grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* RendezvousService::Attach(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<AttachStream>(*this, *context);
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
