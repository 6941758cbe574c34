// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/grpc_rendezvous_client.h"

#include <pthread.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/job/answer_pace.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/socket/plain_trouble.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/round/values/job_policy.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/grpc_transport.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstBackoff = milliseconds(50);
constexpr size_t kMostTold = 16;  // How many reported troubles are remembered.
constexpr Duration kLastBackoff = seconds(1);
constexpr Duration kFirstAnswer = seconds(5);   // From the start of a stream, before any contact.
constexpr Duration kQuietAtFirst = seconds(1);  // Failures within it are not reported yet.
constexpr Duration kLastWord = seconds(2);      // To deliver the last update.

// "2.5", for people.
std::string Seconds(Duration duration) {
  return absl::StrFormat("%g", std::chrono::duration<double>(duration).count());
}

gpr_timespec FromNow(Duration duration) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return ::gpr_time_add(::gpr_now(GPR_CLOCK_MONOTONIC),
                        ::gpr_time_from_micros(std::max<int64_t>(micros, 0), GPR_TIMESPAN));
}

// Returns whether this answer of the rendezvous is final; any other error may pass.
bool IsRefusal(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

bool IsLastWord(NodePhase phase) {
  return phase == NodePhase::kLeft || phase == NodePhase::kFinished;
}

// The tags of the completion queue.
enum class Event { kTimeout, kWake, kStarted, kRead, kWritten, kHalfClosed, kEnded };

void* Tag(Event event) { return reinterpret_cast<void*>(static_cast<intptr_t>(event)); }

// A place where a rendezvous may be.
struct PlaceToTry {
  std::string host;  // A name or a literal.
  uint16_t port = 0;
  std::string name;  // The name in its certificate.
};

// One stream and what is under way on it. Belongs to the client's thread.
struct Stream {
  Stream(const std::string& address, const PlaceToTry& place, const Trust& trust,
         grpc::CompletionQueue* queue)
      : line(address, place.port, trust, place.name),
        stub(v1::Rendezvous::NewStub(line.channel())) {
    rpc = stub->PrepareAsyncAttach(&context, queue);
  }

  const Line line;
  std::unique_ptr<v1::Rendezvous::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::AttachRequest, v1::AttachResponse>> rpc;
  v1::AttachRequest request;
  v1::AttachResponse response;
  grpc::Status status;
  int in_flight = 0;    // Operations whose event has not come.
  bool ready = false;   // Started, and no write is in flight.
  bool joined = false;  // The join message was written.
  bool half_closed = false;
  bool ending = false;
  bool cancelled = false;
  bool welcome = false;            // The rendezvous has answered on it.
  uint64_t sent = 0;               // Version of the last update that was written.
  std::string own_address;         // This host's address on the stream's route.
  Instant heard;                   // When the last message came; at first, the stream's start.
  Instant speaks_at;               // When its next sign of life is due.
  std::deque<Instant> unanswered;  // When our unanswered messages were sent.
  uint64_t answered = 0;           // How many of our messages were answered.
  uint64_t read = 0;               // How many responses have come.
  bool left = false;               // Another place leads: it was cancelled for that.
};

}  // namespace

// The mailbox (the members guarded by `mu_`) is shared; everything below it belongs to the thread.
class GrpcRendezvousClient::Conversation {
 public:
  Conversation(Options options, const NodeInfo& info, const NodeUpdate& update, Listener* listener,
               std::atomic<bool>* contacted)
      : latest_(update),
        options_(std::move(options)),
        info_(info),
        listener_(listener),
        contacted_(*contacted) {
    if (options_.taken_up) TakeUp(*options_.taken_up);
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

  ~Conversation() {
    {
      MutexLock lock(&mu_);
      closing_ = MonotonicClock().Now() + kLastWord;
      WakeLocked();
    }
    if (thread_.joinable()) thread_.join();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void Send(const NodeUpdate& update) {
    MutexLock lock(&mu_);
    latest_ = update;
    ++version_;
    WakeLocked();
  }

  void Answer(NodeAnswer answer) {
    MutexLock lock(&mu_);
    answers_.push_back(std::move(answer));
    if (answers_.size() > kMaxQuestions) answers_.pop_front();
    WakeLocked();
  }

  void Tell(RoundWord word) {
    MutexLock lock(&mu_);
    word_ = std::move(word);
    WakeLocked();
  }

  Allowance AllowanceNow(Instant now) {
    const Instant taken = TakenElsewhere();
    const Duration patience = options_.patience ? options_.patience() : Duration::max();
    MutexLock lock(&mu_);
    if (!known_) return Allowance();
    NoteTakenLocked(taken);
    Allowance allowance = AllowanceAt(known_->lease, std::max(known_->heard, taken_elsewhere_),
                                      known_->forgiven_until);
    if (patience < allowance.workers_until - now) allowance.workers_until = now + patience;
    allowance.as_of = looked_at_;
    return allowance;
  }

  void LedBy(const VoterMembers& places) {
    MutexLock lock(&mu_);
    led_by_ = places;
    WakeLocked();
  }

 private:
  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (std::exchange(waking_, true)) return;  // An alarm is not set twice.
    wake_.Set(&queue_, FromNow(Duration::zero()), Tag(Event::kWake));
  }

  void Run() {
    begun_ = Now();
    if (!contacted_) last_heard_ = begun_;
    while (true) {
      if (std::optional<std::string> address = NextAddress()) Converse(*address);
      if (IsOver()) return;
      PauseBeforeRetry();
      if (IsOver()) return;
    }
  }

  void TakeUp(const Options::TakenUp& former) {
    lease_ = former.lease;
    last_heard_ = former.heard;
    forgiven_until_ = former.forgiven_until;
    learned_ = former.voters;
    begun_turn_ = true;
    contacted_ = true;
    NoteAllowance();
  }

  void PauseBeforeRetry() {
    const Instant until = std::min(Now() + NextBackoff(), GiveUpAt());
    while (Now() < until && !IsOver()) {
      const Instant speak_at = begun_ + kQuietAtFirst;
      AwaitEvent(Now() < speak_at ? std::min(until, speak_at) : until);
      if (TurnToLeader()) return;
      TellTrouble();
    }
  }

  // Returns whether there is no reason to go on: the end was reported, the last message was
  // answered, time is up, or the owner leaves and has no last message to send.
  bool IsOver() {
    if (over_) return true;
    {
      MutexLock lock(&mu_);
      if (closing_.has_value()) {
        const bool last_word_owed = contacted_ && IsLastWord(latest_.phase);
        return over_ = !last_word_owed || Now() >= *closing_;
      }
    }
    if (Now() < GiveUpAt()) return false;
    EndInSilence();
    return true;
  }

  Instant GiveUpAt() {
    if (!contacted_) return begun_ + JoinLimit();
    const Instant taken = TakenElsewhere();
    MutexLock lock(&mu_);
    NoteTakenLocked(taken);
    return hlaunch::GiveUpAt(lease_, std::max(last_heard_, taken_elsewhere_), forgiven_until_);
  }

  // Publishes what allowances follow from, for other threads.
  void NoteAllowance() {
    if (!contacted_) return;
    MutexLock lock(&mu_);
    known_ = {lease_, last_heard_, forgiven_until_};
  }

  Instant TakenElsewhere() const {
    return options_.taken_elsewhere ? options_.taken_elsewhere() : Instant::min();
  }

  // The rendezvous takes such signs of life for the loss limit beyond what the node itself said,
  // and not for ever: a node that cannot be spoken to is of no use.
  void NoteTakenLocked(Instant taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!known_ || taken > known_->heard + known_->lease.loss_limit) return;
    taken_elsewhere_ = std::max(taken_elsewhere_, taken);
  }

  // Goes on with the place that leads, if this process has learned that. Returns true if it has.
  bool TurnToLeader() {
    VoterMembers places;
    {
      MutexLock lock(&mu_);
      places.swap(led_by_);
    }
    if (places.empty() || !contacted_) return false;
    learned_ = std::move(places);
    place_ = options_.endpoint.others.size();
    next_address_ = addresses_.size();
    backoff_ = kFirstBackoff;
    return true;
  }

  Duration JoinLimit() const {
    if (answered_) return options_.join_timeout;
    return std::min(options_.join_timeout, options_.answer_timeout.value_or(options_.join_timeout));
  }

  void EndInSilence() {
    const std::string because = trouble_.empty() ? "" : absl::StrCat(": ", trouble_);
    if (contacted_) {
      const std::string silence = absl::StrCat("nothing heard from the rendezvous at ", Endpoints(),
                                               " for ", Seconds(lease_.loss_limit), " s");
      // No voter leads the job, so what was started in the host's place is all there is.
      if (!another_.empty())
        return End(absl::OutOfRangeError(absl::StrCat(silence, ": ", another_)));
      return End(absl::DeadlineExceededError(absl::StrCat(silence, because)));
    }
    if (addresses_.empty() && !(Several() && resolved_)) {
      return End(
          absl::InvalidArgumentError(absl::StrCat("rendezvous endpoint ", Endpoints(), because,
                                                  " (tried for ", Seconds(JoinLimit()), " s)")));
    }
    if (answered_) {
      return End(absl::FailedPreconditionError(absl::StrCat("the rendezvous at ", Endpoints(),
                                                            " took this node not in within ",
                                                            Seconds(JoinLimit()), " s", because)));
    }
    End(absl::UnavailableError(absl::StrCat("rendezvous at ", Endpoints(), " not reached within ",
                                            Seconds(JoinLimit()), " s", because)));
  }

  void End(const absl::Status& status) {
    over_ = true;
    listener_->OnEnd(status);
  }

  // Returns the next address to try, in turn, or nothing if there is none yet. Looks the name up
  // again after each turn, since its host may have moved.
  std::optional<std::string> NextAddress() {
    if (next_address_ >= addresses_.size()) {
      if (std::exchange(begun_turn_, true) && Several()) NextPlace();
      if (lookup_ == nullptr) lookup_ = Lookup::Start(Place().host);
      const Instant asked = Now();
      Duration slice = milliseconds(1);  // Most names are found at once.
      while (!lookup_->result().has_value()) {
        // A dead name server must not keep us from an address that we know.
        if (Now() - asked >= kLastBackoff) AddDetour();
        if (!addresses_.empty() && Now() - asked >= kLastBackoff) {
          next_address_ = 1;
          return addresses_[0];
        }
        AwaitEvent(Now() + slice);
        if (IsOver()) return std::nullopt;
        if (trouble_.empty()) trouble_ = absl::StrCat("resolving '", Place().host, "'");
        TellTrouble();
        if (Several() && Now() - asked >= kLastBackoff) return std::nullopt;
        slice = std::min<Duration>(2 * slice, milliseconds(20));
      }
      const Lookup::Result found = *std::exchange(lookup_, nullptr)->result();
      if (absl::IsInvalidArgument(found.status())) {
        End(found.status());
        return std::nullopt;
      }
      if (options_.on_lookup && AtEndpoint()) options_.on_lookup(found);
      resolved_ = resolved_ || found.ok();
      if (found.ok()) {
        addresses_ = *found;
      } else {
        Lost(std::string(found.status().message()));
      }
      AddDetour();
      next_address_ = 0;
    }
    if (addresses_.empty()) return std::nullopt;
    return addresses_[next_address_++];
  }

  // The place that is tried now. A place whose host is gone must not keep us from the others.
  const PlaceToTry& Place() const { return now_at_; }
  PlaceToTry PlaceAt(size_t number) const {
    const RendezvousEndpoint& endpoint = options_.endpoint;
    if (number == 0) return {endpoint.host, endpoint.port, endpoint.host};
    if (const size_t other = number - 1; other < endpoint.others.size()) {
      return {endpoint.others[other].first, endpoint.others[other].second,
              endpoint.others[other].first};
    }
    const VoterMember& voter = learned_[number - 1 - endpoint.others.size()];
    const VoterAddress address = SplitAddress(voter.address);
    return {address.literal, address.port, voter.name};
  }
  size_t Places() const { return 1 + options_.endpoint.others.size() + learned_.size(); }
  // False at a voter: its address says nothing about where the endpoint's name leads.
  bool AtEndpoint() const { return place_ <= options_.endpoint.others.size(); }
  bool Several() const { return Places() > 1; }
  void NextPlace() {
    place_ = (place_ + 1) % Places();
    now_at_ = PlaceAt(place_);
    addresses_.clear();
    lookup_ = nullptr;
  }

  // Skips the next place if it is the one that was just silent: the others come first, even if it
  // led.
  void PassOver() {
    if (place_ + 1 >= Places()) return;
    if (IsAt(PlaceAt(place_ + 1))) ++place_;
  }
  bool IsAt(const PlaceToTry& place) const {
    return place.host == now_at_.host && place.port == now_at_.port;
  }

  // Adds the detour after the endpoint's own addresses, since every node ends where the endpoint
  // leads.
  void AddDetour() {
    const auto detour = options_.detour ? options_.detour() : std::nullopt;
    if (!detour) return;
    if (std::find(addresses_.begin(), addresses_.end(), *detour) == addresses_.end()) {
      addresses_.push_back(*detour);
    }
  }

  // Grows from 50 ms to 1 s divided by the number of places; each pause is between half of it and
  // all.
  Duration NextBackoff() {
    const Duration whole = backoff_;
    backoff_ = std::min<Duration>(2 * backoff_, kLastBackoff / static_cast<int>(Places()));
    return Between(whole / 2, whole);
  }

  // Returns the time until the next sign of life is due: at most half a lease.
  Duration NextSign() { return Between(lease_.lease * 3 / 8, lease_.lease / 2); }

  // Returns a random time, so that clients that began together do not go on together.
  Duration Between(Duration low, Duration high) {
    return Duration(
        std::uniform_int_distribution<Duration::rep>(low.count(), high.count())(random_));
  }

  // Talks on one stream until it is gone.
  void Converse(const std::string& address) {
    Stream stream(address, Place(), options_.endpoint.trust, &queue_);
    stream.own_address = LocalAddressTowards(address).value_or("");
    stream.heard = Now();
    stream.rpc->StartCall(Tag(Event::kStarted));
    ++stream.in_flight;
    while (stream.in_flight > 0) {
      const auto [event, ok] = AwaitEvent(WakeAt(stream));
      React(event, ok, &stream);
      if (TurnToLeader() && !stream.cancelled && !IsAt(PlaceAt(place_ + 1))) {
        stream.cancelled = stream.left = true;
        stream.context.TryCancel();
      }
      if (!stream.cancelled && (IsOver() || Now() >= SilentAt(stream))) {
        stream.cancelled = true;
        stream.context.TryCancel();
      }
      if (!stream.cancelled) Say(&stream);
    }
    Judge(stream);
  }

  // Returns how long a stream may be silent. Of several places some may be cut off, most of all the
  // one that led; all of them are to be tried within the loss limit.
  Duration Patience(const Stream& stream) const {
    if (contacted_ && !(Several() && stream.answered == 0)) return lease_.lease;
    if (contacted_) return std::min<Duration>(kFirstAnswer, lease_.lease) / 2;
    return Several() || addresses_.size() > 1 ? kFirstAnswer / 2 : kFirstAnswer;
  }

  Instant SilentAt(const Stream& stream) const {
    return std::max(stream.heard + Patience(stream), stream_forgiven_until_);
  }

  Instant WakeAt(const Stream& stream) {
    if (stream.cancelled) return Now() + kLastBackoff;  // Its last events are due any moment.
    Instant at = std::min(SilentAt(stream), GiveUpAt());
    if (stream.ready && stream.joined) at = std::min(at, stream.speaks_at);
    MutexLock lock(&mu_);
    if (stream.ready) at = std::min(at, AnswerAtLocked(stream, Now()));
    return closing_.has_value() ? std::min(at, *closing_) : at;
  }

  // Returns what the next answer or word says; null if there is none.
  const std::string* NextTextLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!answers_.empty()) return &answers_.front().text;
    return word_ ? &word_->text : nullptr;
  }

  // Returns when that may be sent; Instant::max() if there is none.
  Instant AnswerAtLocked(const Stream& stream, Instant now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const bool may = stream.joined && !stream.half_closed && !stream.ending;
    const std::string* const text = NextTextLocked();
    return may && text != nullptr ? pace_.When(text->size(), now) : Instant::max();
  }

  void React(Event event, bool ok, Stream* stream) {
    if (event == Event::kTimeout || event == Event::kWake) return;
    --stream->in_flight;
    if (event == Event::kRead && ok) Hear(stream);
    const bool reads = event == Event::kStarted || event == Event::kRead;
    if (reads && ok && !over_) {
      stream->rpc->Read(&stream->response, Tag(Event::kRead));
      ++stream->in_flight;
    } else if (reads && !std::exchange(stream->ending, true)) {
      stream->rpc->Finish(&stream->status, Tag(Event::kEnded));
      ++stream->in_flight;
    }
    if (event == Event::kStarted || event == Event::kWritten) stream->ready = ok;
  }

  void Hear(Stream* stream) {
    stream->heard = Now();
    ++stream->read;
    const bool learned = !stream->response.voters().empty() && LearnVoters(*stream);
    Take(stream);
    // A node may become a voter, which takes milliseconds. Its directive does not wait for that.
    // A voter that stands by does not tell what holds for the job.
    if (learned && !over_ && options_.on_voters && policy_) {
      options_.on_voters(*policy_, learned_);
    }
  }

  void Take(Stream* stream) {
    stream->welcome = stream->welcome || stream->response.has_policy();
    if (!stream->welcome) return;  // It is a voter that stands by.
    // The rendezvous answers, so it took at least the join.
    const uint64_t answered = std::max<uint64_t>(1, stream->response.heard());
    while (stream->answered < answered && !stream->unanswered.empty()) {
      last_heard_ = std::max(last_heard_, stream->unanswered.front());
      stream->unanswered.pop_front();
      ++stream->answered;
    }
    if (stream->response.has_policy()) {
      const auto policy = FromProto(stream->response.policy());
      if (!policy.ok()) return EndInConfusion(policy.status());
      lease_ = policy->lease;
      policy_ = *policy;
      const std::string differences = DescribeDifferences(*policy, info_.policy);
      if (!contacted_ && !differences.empty()) {
        LogInfo(absl::StrCat("what the rendezvous says holds for the job: ", differences));
      }
      stream->speaks_at = Now() + NextSign();
    }
    if (stream->response.probe()) stream->speaks_at = {};  // A sign of life is due.
    contacted_ = true;
    NoteAllowance();
    trouble_.clear();
    another_.clear();
    backoff_ = kFirstBackoff;
    News(true, absl::StrCat("connected to the rendezvous at ", Endpoint()));
    for (const v1::NodeQuestion& asked : stream->response.questions()) {
      // A question that this version does not know stays without an answer.
      if (const auto question = FromProto(asked); question.ok()) listener_->OnQuestion(*question);
    }
    for (const v1::RoundWord& said : stream->response.words()) {
      if (const auto word = FromProto(said); word.ok()) listener_->OnWord(*word);
    }
    if (!stream->response.has_directive()) return;
    const auto directive = FromProto(stream->response.directive());
    if (!directive.ok()) return EndInConfusion(directive.status());
    listener_->OnDirective(*directive);
  }

  // From now on the rendezvous may be at any of the voters. Returns false if this node does not
  // understand who they are.
  bool LearnVoters(const Stream& stream) {
    VoterMembers voters;
    for (const v1::Voter& one : stream.response.voters()) {
      auto voter = FromProto(one);
      if (!voter.ok()) {
        LogDebug(absl::StrCat("voters: ", voter.status().message()));
        return false;
      }
      voters.push_back(*std::move(voter));
      if (voters.size() == kMaxVotersTold) break;
    }
    if (voters.size() != learned_.size()) {
      LogDebug(absl::StrCat("this node knows of ", voters.size(), " voters"));
    }
    learned_ = std::move(voters);
    place_ = options_.endpoint.others.size();  // The next turn begins with the leading voter.
    return true;
  }

  void EndInConfusion(const absl::Status& status) {
    End(absl::FailedPreconditionError(
        absl::StrCat("cannot understand the rendezvous at ", Endpoint(), ": ", status.message())));
  }

  // Starts the write that is due, if any: the latest update, an answer, a word to other nodes, a
  // sign of life, or good-bye.
  void Say(Stream* stream) {
    if (!stream->ready || stream->half_closed || stream->ending) return;
    const Instant now = Now();
    std::optional<NodeAnswer> answer;
    std::optional<RoundWord> word;
    NodeUpdate update;
    uint64_t version = 0;
    bool closing = false;
    {
      MutexLock lock(&mu_);
      update = latest_;
      version = version_;
      closing = closing_.has_value();
      if (version == stream->sent && AnswerAtLocked(*stream, now) <= now) {
        pace_.Sent(NextTextLocked()->size(), now);
        if (answers_.empty()) {
          word = std::exchange(word_, std::nullopt);
        } else {
          answer = std::move(answers_.front());
          answers_.pop_front();
        }
      }
    }
    stream->request.Clear();
    if (!stream->joined) {
      *stream->request.mutable_join() = ToProto(info_);
      if (info_.address.empty()) stream->request.mutable_join()->set_address(stream->own_address);
    }
    if (version != stream->sent) {
      *stream->request.mutable_update() = ToProto(update);
    } else if (answer) {
      *stream->request.mutable_answer() = ToProto(*answer);
    } else if (word) {
      *stream->request.mutable_word() = ToProto(*word);
    } else if (closing) {
      stream->half_closed = true;
      stream->rpc->WritesDone(Tag(Event::kHalfClosed));
      ++stream->in_flight;
      return;
    } else if (now < stream->speaks_at) {
      return;
    }
    stream->request.set_seen(stream->read);
    stream->joined = true;
    stream->sent = version;
    stream->speaks_at = now + NextSign();
    stream->unanswered.push_back(now);
    stream->ready = false;
    stream->rpc->Write(stream->request, Tag(Event::kWritten));
    ++stream->in_flight;
  }

  // Returns whether the owner leaves and the rendezvous has answered the last message on this
  // stream.
  bool IsAnswered(const Stream& stream) const {
    MutexLock lock(&mu_);
    return closing_.has_value() && IsLastWord(latest_.phase) && stream.sent == version_ &&
           stream.unanswered.empty();
  }

  // Decides what the end of a stream means.
  void Judge(const Stream& stream) {
    if (over_) return;
    const absl::Status status = stream.line.StatusOfCall(stream.status);
    if (status.ok()) {
      // The rendezvous took all that was sent before the good-bye, or the node's kFinished.
      MutexLock lock(&mu_);
      if (stream.sent == version_ && (stream.half_closed || IsLastWord(latest_.phase))) {
        over_ = true;
        return;
      }
    }
    if (IsAnswered(stream)) {  // The last message was answered, then the rendezvous went away.
      over_ = true;
      return;
    }
    answered_ = answered_ || IsAnswer(stream.status);
    // A rendezvous that was started anew in the place of the first host does not know the job yet.
    const bool forgetful = absl::IsOutOfRange(status) && !learned_.empty();
    if (forgetful) another_ = std::string(status.message());
    if (IsRefusal(status.code()) && !forgetful) return End(AsRefusal(status));
    if (absl::IsUnimplemented(status)) {
      return End(absl::FailedPreconditionError(
          absl::StrCat("what answers at ", Endpoint(), " is not hlaunch's rendezvous")));
    }
    if (stream.left) return;
    if (stream.cancelled) {
      PassOver();
      return Lost(absl::StrCat("no answer for ", Seconds(Patience(stream)), " s"));
    }
    Lost(status.ok() ? "it closed the connection" : stream.line.TroubleOf(stream.status));
  }

  void Lost(const std::string& trouble) {
    trouble_ = trouble;
    TellTrouble();
  }

  // Nodes rarely start in the same second, so an early failure is not reported.
  void TellTrouble() {
    if (trouble_.empty() || (!contacted_ && Now() - begun_ < kQuietAtFirst)) return;
    News(false, absl::StrCat("rendezvous at ", Endpoint(), ": ", trouble_));
  }

  // Reports each thing once. Of several places each may have its own trouble, until one connects.
  void News(bool connected, const std::string& detail) {
    std::pair<bool, std::string> news(connected, detail);
    if (std::find(told_.begin(), told_.end(), news) != told_.end()) return;
    if (connected || !Several() || told_.size() > kMostTold || told_.front().first) told_.clear();
    told_.push_back(std::move(news));
    listener_->OnContact(connected, detail);
  }

  std::pair<Event, bool> AwaitEvent(Instant until) {
    void* tag = nullptr;
    bool ok = false;
    const Instant before = Now();
    const auto next = queue_.AsyncNext(&tag, &ok, FromNow(until - before));
    ForgivePause(std::max(before, until));
    if (next != grpc::CompletionQueue::GOT_EVENT) return {Event::kTimeout, false};
    const Event event = static_cast<Event>(reinterpret_cast<intptr_t>(tag));
    if (event == Event::kWake) {
      MutexLock lock(&mu_);
      waking_ = false;
    }
    return {event, ok};
  }

  // If this process wakes much later than it wanted, it was stopped or starved. The silence in that
  // time proves nothing, so the rendezvous gets one more lease to be heard.
  void ForgivePause(Instant wanted) {
    const Instant now = Now();
    if (now - wanted >= lease_.lease / 2) {
      forgiven_until_ = ForgivenUntil(lease_, LastTaken(), forgiven_until_, wanted, now);
      stream_forgiven_until_ = now + lease_.lease;
      NoteAllowance();
    }
    MutexLock lock(&mu_);
    looked_at_ = now;
  }

  // When the last sign of life of this node was given that the rendezvous took, as far as known.
  Instant LastTaken() const {
    MutexLock lock(&mu_);
    return std::max(last_heard_, taken_elsewhere_);
  }

  std::string Endpoint() const { return HostPort(Place().host, Place().port); }
  std::string Endpoints() const {
    std::string all = HostPort(options_.endpoint.host, options_.endpoint.port);
    for (const auto& [host, port] : options_.endpoint.others) {
      absl::StrAppend(&all, ", ", HostPort(host, port));
    }
    return all;
  }

  grpc::CompletionQueue queue_;

  mutable Mutex mu_;
  struct Known {
    Lease lease;
    Instant heard;
    Instant forgiven_until;
  };
  std::optional<Known> known_ ABSL_GUARDED_BY(mu_);  // Set at the first contact.
  // As Options::taken_elsewhere, as far as that counts.
  Instant taken_elsewhere_ ABSL_GUARDED_BY(mu_) = Instant::min();
  Instant looked_at_ ABSL_GUARDED_BY(mu_);    // When the thread last knew the time.
  VoterMembers led_by_ ABSL_GUARDED_BY(mu_);  // The last word of LedBy, until it is used.
  NodeUpdate latest_ ABSL_GUARDED_BY(mu_);
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 1;
  std::deque<NodeAnswer> answers_ ABSL_GUARDED_BY(mu_);  // Answers that were not sent yet.
  std::optional<RoundWord> word_ ABSL_GUARDED_BY(mu_);   // The latest, if it was not sent yet.
  AnswerPace pace_ ABSL_GUARDED_BY(mu_);                 // Of both.
  std::optional<Instant> closing_ ABSL_GUARDED_BY(mu_);  // The limit of the last message.
  bool waking_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Alarm wake_ ABSL_GUARDED_BY(mu_);

  const Options options_;
  const NodeInfo info_;
  Listener* const listener_;
  Lease lease_;
  std::optional<JobPolicy> policy_;  // The job's policy, once the rendezvous has sent it.
  VoterMembers learned_;             // Further places of the rendezvous.
  Instant begun_;
  Instant last_heard_;             // When our last message that was answered was sent.
  Instant forgiven_until_;         // Silence until then is not held against the rendezvous.
  Instant stream_forgiven_until_;  // Nor against a stream.
  std::atomic<bool>& contacted_;
  bool answered_ = false;  // A rendezvous said something, at least "not yet".
  bool over_ = false;
  std::string trouble_;  // The latest trouble; empty while connected.
  std::string another_;  // What a rendezvous said that has begun anew; empty while connected.
  std::vector<std::pair<bool, std::string>> told_ = {{}};  // The reports that are not repeated.
  std::vector<std::string> addresses_;
  std::shared_ptr<Lookup> lookup_ = options_.lookup;  // Under way; shared with its thread.
  size_t next_address_ = 0;
  size_t place_ = 0;                // An index into the endpoint, its others and the voters.
  PlaceToTry now_at_ = PlaceAt(0);  // The place that is tried now, or spoken to.
  bool begun_turn_ = false;         // The first place has been tried.
  bool resolved_ = false;           // Some name had an address.
  Duration backoff_ = kFirstBackoff;
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(NewIncarnation())};

  std::thread thread_;
};

GrpcRendezvousClient::GrpcRendezvousClient(Options options) : options_(std::move(options)) {}

GrpcRendezvousClient::~GrpcRendezvousClient() = default;

void GrpcRendezvousClient::Join(const NodeInfo& info, const NodeUpdate& update,
                                Listener* listener) {
  HLAUNCH_CHECK(conversation_ == nullptr);
  conversation_ = std::make_unique<Conversation>(options_, info, update, listener, &contacted_);
  begun_ = conversation_.get();
}

void GrpcRendezvousClient::LedBy(const VoterMembers& places) {
  if (Conversation* const begun = begun_) begun->LedBy(places);
}

void GrpcRendezvousClient::Send(const NodeUpdate& update) {
  HLAUNCH_CHECK(conversation_ != nullptr);
  conversation_->Send(update);
}

void GrpcRendezvousClient::Answer(NodeAnswer answer) {
  HLAUNCH_CHECK(conversation_ != nullptr);
  conversation_->Answer(std::move(answer));
}

void GrpcRendezvousClient::Tell(RoundWord word) {
  HLAUNCH_CHECK(conversation_ != nullptr);
  conversation_->Tell(std::move(word));
}

Allowance GrpcRendezvousClient::AllowanceNow(Instant now) const {
  return conversation_ == nullptr ? Allowance() : conversation_->AllowanceNow(now);
}

namespace {

// One address where a rendezvous may be.
struct Target {
  std::string address;
  uint16_t port = 0;
  std::string host;
};

// Returns all targets. A place without an address is left out as long as another place has one.
//
// Errors: as ReportNodeDeath.
absl::StatusOr<std::vector<Target>> TargetsOf(const RendezvousEndpoint& endpoint,
                                              Instant deadline) {
  std::vector<std::pair<std::string, uint16_t>> places = endpoint.others;
  places.insert(places.begin(), {endpoint.host, endpoint.port});
  std::vector<Target> targets;
  absl::Status trouble;
  for (const auto& [host, port] : places) {
    const auto found = Lookup::Start(host)->Await(
        places.size() == 1 ? deadline : std::min(deadline, MonotonicClock().Now() + kLastBackoff));
    if (!found.has_value()) {
      trouble = absl::DeadlineExceededError(absl::StrCat("cannot resolve '", host, "' in time"));
    } else if (!found->ok()) {
      trouble = found->status();
    } else {
      for (const std::string& address : **found) targets.push_back({address, port, host});
    }
  }
  if (targets.empty()) return trouble;
  return targets;
}

}  // namespace

absl::Status ReportNodeDeath(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                             absl::string_view node_id, Incarnation incarnation,
                             absl::string_view reason, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(endpoint, deadline));
  v1::ReportNodeDeathRequest request;
  request.set_job_id(ToUtf8(job_id, kMaxTextBytes));
  request.set_node_id(ToUtf8(node_id, kMaxTextBytes));
  request.set_incarnation(incarnation);
  request.set_reason(ToUtf8(reason, kMaxTextBytes));
  CallTrouble trouble;
  for (size_t i = 0; MonotonicClock().Now() < deadline; i = (i + 1) % targets.size()) {
    const Duration left = deadline - MonotonicClock().Now();
    const Line line(targets[i].address, targets[i].port, endpoint.trust, targets[i].host);
    grpc::ClientContext context;
    context.set_deadline(FromNow(targets.size() == 1 ? left : std::min(left, kLastBackoff)));
    v1::ReportNodeDeathResponse response;
    const grpc::Status status =
        v1::Rendezvous::NewStub(line.channel())->ReportNodeDeath(&context, request, &response);
    const absl::Status told = line.StatusOfCall(status);
    if (told.ok() || IsRefusal(told.code())) return told;
    trouble.Learn(line.TroubleOf(status), absl::IsDeadlineExceeded(told));
    std::this_thread::sleep_for(std::min(kFirstBackoff, left));
  }
  return absl::UnavailableError(absl::StrCat(
      "rendezvous at ", HostPort(endpoint.host, endpoint.port), " not reached: ", trouble.Words()));
}

}  // namespace hlaunch
