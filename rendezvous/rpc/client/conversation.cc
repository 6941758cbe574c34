// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/conversation.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLastBackoff = seconds(1);
constexpr Duration kFirstAnswer = seconds(5);   // From the start of a call, before any contact.
constexpr Duration kQuietAtFirst = seconds(1);  // Failures within it are not reported yet.
constexpr Duration kLastMessage = seconds(2);   // To deliver the last update.

}  // namespace

Conversation::Conversation(ClientOptions options, const NodeInfo& info, const NodeUpdate& update,
                           Listener* listener, std::atomic<bool>* contacted)
    : outbox_(update),
      begun_(Now()),
      lease_(options.taken_up ? ClientLease(options.taken_up->lease, options.taken_up->heard,
                                            options.taken_up->forgiven_until)
                              : ClientLease(begun_)),
      options_(std::move(options)),
      info_(info),
      listener_(listener),
      contacted_(*contacted),
      candidates_(options_.endpoint, options_.lookup),
      reports_(listener) {
  if (options_.taken_up) {
    candidates_.Learn(options_.taken_up->voters);
    candidates_.BeginTurn();
    contacted_ = true;
  }
  try {
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "rdzv-client");
      Run();
    });
  } catch (const std::system_error& error) {
    End(absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread that speaks to the rendezvous: ", error.code().message())));
  }
}

Conversation::~Conversation() {
  outbox_.Close(Now() + kLastMessage);
  events_.Wake();
  if (thread_.joinable()) thread_.join();
}

Allowance Conversation::AllowanceNow(Instant now) {
  NoteTakenElsewhere();
  const Duration patience = options_.patience ? options_.patience() : Duration::max();
  std::optional<Allowance> allowance = lease_.AllowanceNow();
  if (!allowance) return Allowance();
  if (patience < allowance->workers_until - now) allowance->workers_until = now + patience;
  return *allowance;
}

void Conversation::LedBy(const VoterMembers& places) {
  {
    MutexLock lock(&mu_);
    led_by_ = places;
  }
  events_.Wake();
}

void Conversation::Run() {
  while (true) {
    if (std::optional<std::string> address = NextAddress()) Converse(*address);
    if (IsOver()) return;
    PauseBeforeRetry();
    if (IsOver()) return;
  }
}

void Conversation::PauseBeforeRetry() {
  const Instant until = std::min(Now() + NextBackoff(), GiveUpAt());
  while (Now() < until && !IsOver()) {
    const Instant speak_at = begun_ + kQuietAtFirst;
    AwaitEvent(Now() < speak_at ? std::min(until, speak_at) : until);
    if (TurnToLeader()) return;
    ReportTrouble();
  }
}

bool Conversation::IsOver() {
  if (over_) return true;
  const Outbox::State state = outbox_.state();
  if (state.close_until) {
    const bool last_message_owed = contacted_ && state.last_update;
    return over_ = !last_message_owed || Now() >= *state.close_until;
  }
  if (Now() < GiveUpAt()) return false;
  EndInSilence();
  return true;
}

Instant Conversation::GiveUpAt() {
  if (!contacted_) return begun_ + JoinLimit();
  NoteTakenElsewhere();
  return lease_.GiveUpAt();
}

void Conversation::NoteTakenElsewhere() {
  if (options_.taken_elsewhere) lease_.TakenElsewhere(options_.taken_elsewhere());
}

bool Conversation::TurnToLeader() {
  VoterMembers places;
  {
    MutexLock lock(&mu_);
    places.swap(led_by_);
  }
  if (places.empty() || !contacted_) return false;
  candidates_.TurnTo(std::move(places));
  backoff_ = kFirstBackoff;
  return true;
}

Duration Conversation::JoinLimit() const {
  if (answered_) return options_.join_timeout;
  return std::min(options_.join_timeout, options_.answer_timeout.value_or(options_.join_timeout));
}

void Conversation::EndInSilence() {
  LostContact lost;
  lost.contacted = contacted_;
  lost.answered = answered_;
  lost.unresolved =
      candidates_.addresses() == 0 && !(candidates_.several() && candidates_.resolved());
  lost.endpoints = candidates_.Endpoints();
  lost.limit = contacted_ ? Duration(lease_.lease().loss_limit) : JoinLimit();
  lost.trouble = trouble_;
  lost.another = another_;
  End(StatusOf(lost));
}

void Conversation::End(const absl::Status& status) {
  over_ = true;
  listener_->OnEnd(status);
}

std::optional<std::string> Conversation::NextAddress() {
  if (auto address = candidates_.NextAddress()) return address;
  candidates_.StartLookup();
  const Instant started = Now();
  Duration slice = milliseconds(1);  // Most names are found at once.
  while (!candidates_.lookup_result()) {
    // A dead name server must not keep us from an address that we know.
    if (const bool late = Now() - started >= kLastBackoff; late) {
      AddDetour();
      candidates_.TryKnownAddresses();
      if (auto address = candidates_.NextAddress()) return address;
    }
    AwaitEvent(Now() + slice);
    if (IsOver()) return std::nullopt;
    if (trouble_.empty()) {
      trouble_ = absl::StrCat("resolving '", candidates_.current().host, "'");
    }
    ReportTrouble();
    if (candidates_.several() && Now() - started >= kLastBackoff) return std::nullopt;
    slice = std::min<Duration>(2 * slice, milliseconds(20));
  }
  const Lookup::Result found = *candidates_.lookup_result();
  candidates_.EndLookup(found);
  if (absl::IsInvalidArgument(found.status())) {
    End(found.status());
    return std::nullopt;
  }
  if (options_.on_lookup && candidates_.at_endpoint()) options_.on_lookup(found);
  if (!found.ok()) Lost(std::string(found.status().message()));
  AddDetour();
  return candidates_.NextAddress();
}

void Conversation::AddDetour() {
  const auto detour = options_.detour ? options_.detour() : std::nullopt;
  if (detour) candidates_.AddAddress(*detour);
}

Duration Conversation::NextBackoff() {
  const Duration whole = backoff_;
  backoff_ = std::min<Duration>(2 * backoff_, kLastBackoff / static_cast<int>(candidates_.count()));
  return random_.Between(whole / 2, whole);
}

Duration Conversation::NextSign() {
  const Duration lease = lease_.lease().lease;
  return random_.Between(lease * 3 / 8, lease / 2);
}

void Conversation::Converse(const std::string& address) {
  AttachCall call(address, candidates_.current(), options_.endpoint.trust, &events_, Now());
  while (call.under_way()) {
    const auto [event, ok] = AwaitEvent(WakeAt(call));
    if (event != Event::kTimeout && event != Event::kWake) {
      if (call.TakeIn(event, ok, Now())) Hear(&call);
      call.GoOn(event, ok, !over_);
    }
    if (TurnToLeader() && !call.cancelled() && !candidates_.next_is_current()) call.Cancel(true);
    if (!call.cancelled() && (IsOver() || Now() >= SilentAt(call))) call.Cancel(false);
    if (call.cancelled() || !call.can_write()) continue;
    const Instant now = Now();
    call.Write(info_, outbox_.Take(call.sent(), call.joined(), now), now, NextSign());
  }
  Judge(call);
}

Duration Conversation::Patience(const AttachCall& call) const {
  const Duration lease = lease_.lease().lease;
  if (contacted_ && !(candidates_.several() && call.answered() == 0)) return lease;
  if (contacted_) return std::min<Duration>(kFirstAnswer, lease) / 2;
  return candidates_.several() || candidates_.addresses() > 1 ? kFirstAnswer / 2 : kFirstAnswer;
}

Instant Conversation::SilentAt(const AttachCall& call) const {
  return std::max(call.heard() + Patience(call), call_forgiven_until_);
}

Instant Conversation::WakeAt(const AttachCall& call) {
  if (call.cancelled()) return Now() + kLastBackoff;  // Its last events are due any moment.
  Instant at = std::min(SilentAt(call), GiveUpAt());
  if (call.ready() && call.joined()) at = std::min(at, call.speaks_at());
  if (call.can_write() && call.joined()) at = std::min(at, outbox_.NextAt(Now()));
  return std::min(at, outbox_.state().close_until.value_or(at));
}

void Conversation::Hear(AttachCall* call) {
  const bool learned = call->response().voters_size() > 0 && LearnVoters(call->response());
  if (call->welcome()) TakeIn(call);
  // A node may become a voter, which takes milliseconds. Its directive does not wait for that.
  // A voter that stands by does not say what holds for the job.
  if (learned && !over_ && options_.on_voters && policy_) {
    options_.on_voters(*policy_, candidates_.voters());
  }
}

void Conversation::TakeIn(AttachCall* call) {
  const v1::AttachResponse& response = call->response();
  if (const auto sent = call->CountAnswered()) lease_.Heard(*sent);
  if (response.has_policy()) {
    const auto policy = FromProto(response.policy());
    if (!policy.ok()) return EndInConfusion(policy.status());
    lease_.Renew(policy->lease);
    policy_ = *policy;
    const std::string differences = DescribeDifferences(*policy, info_.policy);
    if (!contacted_ && !differences.empty()) {
      LogInfo(absl::StrCat("what the rendezvous says holds for the job: ", differences));
    }
    call->SpeakAt(Now() + NextSign());
  }
  if (response.probe()) call->SpeakAt({});  // A sign of life is due.
  contacted_ = true;
  lease_.Begin();
  trouble_.clear();
  another_.clear();
  backoff_ = kFirstBackoff;
  Report(true, absl::StrCat("connected to the rendezvous at ", Endpoint()));
  for (const v1::NodeQuestion& asked : response.questions()) {
    // A question that this version does not know stays without an answer.
    if (const auto question = FromProto(asked); question.ok()) listener_->OnQuestion(*question);
  }
  for (const v1::RoundWord& said : response.words()) {
    if (const auto word = FromProto(said); word.ok()) listener_->OnWord(*word);
  }
  if (!response.has_directive()) return;
  const auto directive = FromProto(response.directive());
  if (!directive.ok()) return EndInConfusion(directive.status());
  listener_->OnDirective(*directive);
}

bool Conversation::LearnVoters(const v1::AttachResponse& response) {
  VoterMembers voters;
  for (const v1::Voter& one : response.voters()) {
    auto voter = FromProto(one);
    if (!voter.ok()) {
      LogDebug(absl::StrCat("voters: ", voter.status().message()));
      return false;
    }
    voters.push_back(*std::move(voter));
    if (voters.size() == kMaxVotersTold) break;
  }
  if (voters.size() != candidates_.voters().size()) {
    LogDebug(absl::StrCat("this node knows of ", voters.size(), " voters"));
  }
  candidates_.Learn(std::move(voters));
  return true;
}

void Conversation::EndInConfusion(const absl::Status& status) {
  End(absl::FailedPreconditionError(
      absl::StrCat("cannot understand the rendezvous at ", Endpoint(), ": ", status.message())));
}

bool Conversation::IsDelivered(const AttachCall& call, const absl::Status& status) const {
  const Outbox::State state = outbox_.state();
  if (call.sent() != state.version) return false;
  // The rendezvous took all that was sent before the stream's end, or the node's kFinished.
  if (status.ok() && (call.half_closed() || state.last_update)) return true;
  // The last message was answered, then the rendezvous went away.
  return state.close_until && state.last_update && call.all_answered();
}

void Conversation::Judge(const AttachCall& call) {
  if (over_) return;
  const absl::Status status = call.status();
  if (IsDelivered(call, status)) {
    over_ = true;
    return;
  }
  answered_ = answered_ || call.ended_by_answer();
  // A rendezvous that was started anew in the place of the first host does not know the job yet.
  const bool forgetful = absl::IsOutOfRange(status) && !candidates_.voters().empty();
  if (forgetful) another_ = std::string(status.message());
  if (IsRefusal(status.code()) && !forgetful) return End(AsRefusal(status));
  if (absl::IsUnimplemented(status)) {
    return End(absl::FailedPreconditionError(
        absl::StrCat("what answers at ", Endpoint(), " is not hlaunch's rendezvous")));
  }
  if (call.left()) return;
  if (call.cancelled()) {
    candidates_.PassOver();
    return Lost(absl::StrCat("no answer for ", SecondsText(Patience(call)), " s"));
  }
  Lost(status.ok() ? "it closed the connection" : call.trouble());
}

void Conversation::Lost(const std::string& trouble) {
  trouble_ = trouble;
  ReportTrouble();
}

void Conversation::ReportTrouble() {
  if (trouble_.empty() || (!contacted_ && Now() - begun_ < kQuietAtFirst)) return;
  Report(false, absl::StrCat("rendezvous at ", Endpoint(), ": ", trouble_));
}

void Conversation::Report(bool connected, const std::string& detail) {
  reports_.Report(connected, detail, candidates_.several());
}

std::pair<Event, bool> Conversation::AwaitEvent(Instant until) {
  const Instant before = Now();
  const auto event = events_.Next(before, until);
  const Instant now = Now();
  if (lease_.WokeUp(std::max(before, until), now)) {
    call_forgiven_until_ = now + lease_.lease().lease;
  }
  return event;
}

std::string Conversation::Endpoint() const {
  return HostPort(candidates_.current().host, candidates_.current().port);
}

}  // namespace hlaunch
