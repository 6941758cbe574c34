// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/process_transport.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

std::string KeyPrefix(const std::string& group) {
  return absl::StrCat("hlaunch/comm/", group, "/");
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Returns the milliseconds until `until`, rounded up, for a wait.
int MillisUntil(Instant until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Now());
  return static_cast<int>(std::min<int64_t>(left.count() + 1, 1 << 30));
}

// The longest time that a rank handles no events because the store or another host does not answer.
constexpr auto kMostDeafTime = std::chrono::milliseconds(50);
// The same for a repeated look-up of a rank's address.
constexpr Duration kMostLookUpTime = std::chrono::seconds(1);
// A rank whose time is up looks this often what the ranks that were asked have said. It decides
// once none has said more for kQuietTime, because a rank may just look up an address, or after
// kSearchTime.
constexpr Duration kSearchPeriod = std::chrono::milliseconds(200);
constexpr Duration kQuietTime = kMostLookUpTime + kSearchPeriod;
constexpr Duration kSearchTime = std::chrono::seconds(3);
// For an answer of the store to that rank, which an overloaded machine delays.
constexpr Duration kAnswerTime = std::chrono::seconds(1);
// After this time without an event a rank checks whether other ranks make another call.
constexpr auto kMismatchPeriod = std::chrono::milliseconds(500);

// A rank that yields its core for this long sleeps instead. Where others compute there, a yield
// takes a turn of each of them, 3 ms and more, in the place of a microsecond, and the rank takes no
// connection meanwhile and hears of no failure.
constexpr auto kMostYielding = std::chrono::milliseconds(1);

// If the other end has closed the socket, a rank pauses for this time before it dials again.
constexpr auto kRedialPause = std::chrono::milliseconds(10);

GroupPlace PlaceOf(Rank rank, int size, const ProcessTransportOptions& options) {
  return {.group = options.name,
          .secret = options.secret,
          .rank = rank,
          .size = size,
          .round = options.round};
}

// Returns whether `message`, which is under way with `peer`, is a receive.
bool IsReceive(const Peer& peer, const Message& message) {
  return peer.arriving == &message ||
         std::find(peer.posted.begin(), peer.posted.end(), &message) != peer.posted.end();
}

// Returns whether no message can come from `peer` any more. On a connection whose greeting is not
// over, the peer says only that it leaves. If there is a connection from the peer, the notice on
// that one decides.
bool SendsNoMore(const Peer& peer) {
  return peer.left_in || peer.gone || (peer.left_out && !peer.sends && peer.in == nullptr);
}

// Returns whether a message of this rank to or from `peer` is under way.
bool IsMissed(const Peer& peer) {
  return !peer.posted.empty() || peer.arriving != nullptr || !peer.sending.empty() ||
         (peer.out != nullptr && !peer.out->Settled());
}

}  // namespace

ProcessTransport::ProcessTransport(Store& store, Rank rank, int size,
                                   const ProcessTransportOptions& options, Acceptor acceptor,
                                   EventPoll poll)
    : rank_(rank),
      name_(options.name),
      // Ranks with the same text can reach the same abstract sockets: unix(7),
      // network_namespaces(7).
      host_(options.shared_memory ? HostNodeId(0) : ""),
      local_ranks_(options.local_ranks),
      cores_(CpusToSpinOn()),
      plan_(PlanWait(local_ranks_, cores_)),
      peers_(rank, size),
      poll_(std::move(poll)),
      connections_(store, KeyPrefix(name_), PlaceOf(rank, size, options), std::move(acceptor),
                   {options.shared_memory, options.single_copy, options.streams}, peers_, poll_),
      sender_(peers_, poll_),
      receiver_(rank, peers_,
                [this](Failure failure) { FailGroup(std::move(failure)).IgnoreError(); }),
      record_(store, KeyPrefix(name_)) {}

absl::StatusOr<std::unique_ptr<ProcessTransport>> ProcessTransport::Create(
    Store& store, Rank rank, int size, const ProcessTransportOptions& options) {
  HLAUNCH_ASSIGN_OR_RETURN(Acceptor acceptor,
                           Acceptor::Open(options.address, PlaceOf(rank, size, options)));
  HLAUNCH_ASSIGN_OR_RETURN(EventPoll poll, EventPoll::Create());
  std::unique_ptr<ProcessTransport> transport(
      new ProcessTransport(store, rank, size, options, std::move(acceptor), std::move(poll)));
  HLAUNCH_RETURN_IF_ERROR(transport->connections_.Publish());
  return transport;
}

ProcessTransport::~ProcessTransport() {
  AcceptConnections();  // So that ranks which have just connected get the notice, too.
  if (failure() == nullptr) connections_.TellLeft();
  Failure said = failure_;
  if (said.status.ok() && !goodbye_.empty()) said = {absl::UnknownError(goodbye_), rank_};
  for (const auto& peer : peers_.all()) {
    if (peer == nullptr) continue;
    const Notice notice{failure() == nullptr ? Notice::kLeft : Notice::kFailed, said,
                        peer->out != nullptr};
    if (peer->in != nullptr) peer->in->SendNotice(notice);
    if (peer->out != nullptr) peer->out->SendNotice(notice);
  }
}

// ---- Messages.

void ProcessTransport::Start(Outgoing* message) {
  if (failure() == nullptr) sender_.Start(message);
}

void ProcessTransport::Start(Incoming* message) {
  if (failure() == nullptr) receiver_.Start(message);
}

bool ProcessTransport::Move(const Message& message) {
  const bool sent = sender_.SendAll();
  const bool received = message.peer == kAnyRank ? receiver_.ReceiveFromAll()
                                                 : receiver_.ReceiveFrom(peers_.At(message.peer));
  return sent || received;
}

absl::Status ProcessTransport::Progress(const Message& message, Instant until) {
  if (failure() != nullptr) return failure_.status;
  if (message.done) return absl::OkStatus();
  awaited_ = &message;
  sender_.ResetMoved();
  receiver_.ResetMoved();
  bool slept = false;
  Instant yields_end;
  for (int i = 0; !message.done; ++i) {
    if (poked_.load(std::memory_order_relaxed)) {
      poked_.store(false, std::memory_order_relaxed);
      HandleEvents(0);
      if (failure() == nullptr) break;
    }
    if (failure() != nullptr) return failure_.status;
    const bool moved = Move(message);
    // These also count messages that were moved before and during a sleep.
    if ((sender_.moved() || receiver_.moved()) && others_wait()) break;
    if (moved) {
      i = 0;
    } else if (i < plan_.spins) {
      Pause();
    } else if (i < plan_.spins + plan_.yields) {
      if (i == plan_.spins) yields_end = Now() + kMostYielding;
      ::sched_yield();
      if (Now() >= yields_end) i = plan_.spins + plan_.yields;
    } else if (Now() < until) {
      HLAUNCH_RETURN_IF_ERROR(Sleep(message, until));
      slept = true;
    } else {
      if (!slept) HLAUNCH_RETURN_IF_ERROR(Attend(message));
      break;
    }
  }
  awaited_ = nullptr;
  return absl::OkStatus();
}

absl::Status ProcessTransport::GiveUp(const Message& message) {
  if (message.peer == kAnyRank) return FailGroup({TimedOut(rank_, "any rank", message), -1});
  const Failure failure = InVain(message);
  if (size() == 2) return FailGroup(failure);  // The other rank can only wait for this one.
  if (!record_.RecordWait(rank_, failure)) return FailGroup(failure);
  if (!record_.SearchesForAll(rank_)) {
    auto first = record_.AwaitFirst(Now() + kSearchTime + 2 * kAnswerTime);
    if (first.has_value()) {
      SetFailure(*std::move(first));
      return failure_.status;
    }
  }
  Ask(message.peer);
  return FailGroup(FollowWaits(failure));
}

// ---- Connections.

// Asks the store once, for longer each time: on an overloaded machine no answer may come within
// kMostDeafTime, however often the rank asks. Afterwards it handles events for at least as long.
absl::StatusOr<std::optional<RankAddress>> ProcessTransport::LookUp(Peer& peer, Instant until) {
  const Instant began = Now();
  const Duration patience =
      std::clamp<Duration>(2 * peer.lookup_time, kMostDeafTime, kMostLookUpTime);
  auto address = connections_.LookUp(peer, std::min(until, began + patience));
  if (address.ok()) return *std::move(address);
  if (!absl::IsDeadlineExceeded(address.status())) return address.status();
  peer.lookup_time = patience;
  const Instant now = Now();
  peer.next_lookup = now + (now - began);
  HandleEvents(0);
  return std::nullopt;  // The peer has not come yet.
}

// Connects one peer that a message of this rank needs, if any is not connected and is to be looked
// up now. The peer that `message` comes from is such a peer, too, because it sends notices on the
// connection from this rank. The peers take turns: one that has not come keeps this rank from none
// that has.
absl::StatusOr<bool> ProcessTransport::ConnectMissing(const Message& message, Instant until) {
  Peer* next = nullptr;
  const auto consider = [&next](Peer& peer) {
    if (peer.out != nullptr || peer.dialing != nullptr || peer.out_broken) return;
    if (next == nullptr || peer.next_lookup < next->next_lookup) next = &peer;
  };
  for (Peer* peer : sender_.sending()) {
    if (peer->out_broken) return FailGroup({WentAway(peer->Name(), &message), peer->rank});
    consider(*peer);
  }
  if (message.peer != kAnyRank) consider(peers_.At(message.peer));
  if (next == nullptr || next->next_lookup > Now()) return false;
  HLAUNCH_RETURN_IF_ERROR(Connect(*next, message, until));
  return true;
}

absl::Status ProcessTransport::Connect(Peer& peer, const Message& message, Instant until) {
  const auto address = LookUp(peer, until);
  if (failure() != nullptr) return failure_.status;
  if (!address.ok()) return FailGroup({address.status(), peer.rank});
  if (!address->has_value()) return absl::OkStatus();
  if (peer.dialed > 0) HandleEvents(static_cast<int>(kRedialPause.count()));
  if (failure() != nullptr) return failure_.status;
  const absl::Status status = connections_.Dial(peer, **address, until);
  if (status.ok()) ContinueDialing(peer);
  if (status.ok() || absl::IsDeadlineExceeded(status)) return absl::OkStatus();
  if (absl::IsUnavailable(status)) return HandleRefusal(peer, message);
  return FailGroup({absl::Status(status.code(), absl::StrCat("cannot connect to ", peer.Name(),
                                                             ": ", status.message())),
                    peer.rank});
}

// Called when the peer does not listen any more. The peer may have connected to this rank and left
// since; then its notice on that connection says why.
absl::Status ProcessTransport::HandleRefusal(Peer& peer, const Message& message) {
  peer.out_broken = true;
  AcceptConnections();
  for (int i = 0; i < 20 && peer.in == nullptr && connections_.has_pending(); ++i) {
    HandleEvents(static_cast<int>(kMostDeafTime.count()));
  }
  if (peer.in != nullptr) return absl::OkStatus();
  return FailGroup({WentAway(peer.Name(), &message), peer.rank});
}

void ProcessTransport::ContinueDialing(Peer& peer) {
  const absl::Status status = connections_.ContinueDialing(peer);
  if (!status.ok()) FailGroup({status, peer.rank}).IgnoreError();
}

void ProcessTransport::AcceptConnections() {
  const auto [connected, second] = connections_.Accept();
  if (!second.status.ok()) FailGroup(second).IgnoreError();
  if (connected.empty()) return;
  plan_ = PlanWait(std::max(local_ranks_, connections_.local_peers() + 1), cores_);
  for (Peer* peer : connected) {
    peer->next_lookup = {};  // It has come.
    peer->gone = false;      // If it has ended since, its own connection says so.
  }
  if (failure() == nullptr) return;
  // Ranks that connect after the failure learn its reason.
  for (Peer* peer : connected) peer->in->SendNotice({Notice::kFailed, failure_});
}

// ---- Sleeping, and what wakes a rank.

bool ProcessTransport::AllHaveLeft() const {
  for (Rank rank = 0; rank < size(); ++rank) {
    const auto& peer = peers_.all()[rank];
    if (rank != rank_ && (peer == nullptr || !SendsNoMore(*peer))) return false;
  }
  return true;
}

// Fails the group if `message` cannot be done because its peer has left.
absl::Status ProcessTransport::CheckNotLeft(const Message& message) {
  if (message.peer == kAnyRank) {
    return AllHaveLeft() ? FailGroup({Left("everybody", message), -1}) : absl::OkStatus();
  }
  Peer& peer = peers_.At(message.peer);
  if (message.done) return absl::OkStatus();
  if (peer.gone) {
    // Its connection to this rank may just be made, with what it sent.
    if (peer.in == nullptr) return HandleRefusal(peer, message);
    return FailGroup({WentAway(peer.Name(), &message), peer.rank});
  }
  const bool left = IsReceive(peer, message) ? SendsNoMore(peer) : peer.left_in || peer.left_out;
  return left ? FailGroup({Left(peer.Name(), message, peer.goodbye), peer.rank}) : absl::OkStatus();
}

absl::Status ProcessTransport::Sleep(const Message& message, Instant until) {
  Answer(message);
  HLAUNCH_ASSIGN_OR_RETURN(const bool connected, ConnectMissing(message, until));
  if (connected) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(CheckNotLeft(message));
  // Another rank may wait until this rank has taken its message, while this rank waits for that
  // rank.
  if (receiver_.ReceivePosted() || failure() != nullptr) return failure_.status;
  if (receiver_.Arm() && sender_.Arm()) {
    const int most = static_cast<int>(kMismatchPeriod.count());
    if (HandleEvents(std::clamp(MillisUntil(until), 1, most)) == 0) receiver_.FindMismatch();
  } else {
    HandleEvents(0);
    ReadNoticesReadAhead();
  }
  return failure_.status;
}

// Reads the notices that came with data: they make no event of their own.
void ProcessTransport::ReadNoticesReadAhead() {
  if (receiver_.receives_from_any()) {
    for (const auto& peer : peers_.all()) {
      if (peer != nullptr && peer->in != nullptr) ReadInNotices(*peer);
    }
  }
  // By index, because a failure clears the list meanwhile.
  for (size_t i = 0; i < receiver_.receiving().size(); ++i) {
    Peer& peer = *receiver_.receiving()[i];
    if (peer.in != nullptr) ReadInNotices(peer);
  }
}

absl::Status ProcessTransport::Attend(const Message& message) {
  Answer(message);
  HLAUNCH_ASSIGN_OR_RETURN(const bool connected, ConnectMissing(message, Now() + kMostDeafTime));
  if (connected) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(CheckNotLeft(message));
  receiver_.ReceivePosted();
  HandleEvents(0);
  ReadNoticesReadAhead();
  return failure_.status;
}

int ProcessTransport::HandleEvents(int millis) {
  return poll_.Wait(millis, [this](const EventPoll::Event& event) {
    switch (event.source) {
      case EventPoll::kAcceptor:
        return AcceptConnections();
      case EventPoll::kWoken:
        return HandleWake();
      case EventPoll::kOut:
        return HandleOut(peers_.At(event.rank));
      case EventPoll::kIn:
        receiver_.ReceiveFrom(peers_.At(event.rank));
        return ReadInNotices(peers_.At(event.rank));
    }
  });
}

void ProcessTransport::HandleWake() {
  if (!poll_.ClearWake()) return;
  std::optional<std::string> why;
  {
    MutexLock lock(&mu_);
    why = abort_reason_;
  }
  if (!why.has_value()) return;
  const std::string& host = connections_.address().host;
  FailGroup({absl::CancelledError(absl::StrCat("rank ", rank_, " on ", host, ": ", *why)), rank_})
      .IgnoreError();
}

// Returns whether the connection ended though the peer has not left.
bool ProcessTransport::HandleNotices(Peer& peer, const std::vector<Notice>& notices, bool* left) {
  for (const Notice& notice : notices) {
    if (failure() != nullptr) return false;
    if (notice.kind == Notice::kFailed) SetFailure(notice.failure);
    if (notice.kind == Notice::kAsks) asked_ = true;
    if (notice.kind == Notice::kDisconnected) {
      if (!peer.left_in && !peer.left_out) return true;
      *left = true;
      return false;
    }
    if (notice.kind == Notice::kLeft) {
      *left = true;
      peer.sends = notice.sends;
      if (!notice.failure.status.ok()) {
        peer.goodbye = std::string(notice.failure.status.message());
      }
    }
  }
  return false;
}

// An event may still come for a socket that is closed already.
void ProcessTransport::HandleOut(Peer& peer) {
  if (peer.dialing != nullptr) return ContinueDialing(peer);
  if (peer.out != nullptr) ReadOutNotices(peer);
}

// A peer that leaves may close the connection from this rank before it has accepted it. Then the
// notice on the peer's own connection counts.
void ProcessTransport::ReadOutNotices(Peer& peer) {
  if (!HandleNotices(peer, peer.out->ReadNotices(), &peer.left_out)) return;
  peer.out_broken = true;
  AcceptConnections();
  if (peer.in == nullptr) NoteGone(peer);
}

void ProcessTransport::ReadInNotices(Peer& peer) {
  if (HandleNotices(peer, peer.in->ReadNotices(), &peer.left_in)) NoteGone(peer);
}

// A peer that ended without a word may have made all its calls: os._exit(0) ends a program like
// that. So its end is a failure only where it is missed, now or later.
void ProcessTransport::NoteGone(Peer& peer) {
  peer.gone = true;
  receiver_.ReceiveFrom(peer);  // What it sent before, even since the last look.
  if (IsMissed(peer)) FailGroup({WentAway(peer.Name(), awaited_), peer.rank}).IgnoreError();
}

void ProcessTransport::Abort(const std::string& why) {
  {
    MutexLock lock(&mu_);
    if (!abort_reason_.has_value()) abort_reason_ = why;
  }
  Poke();
}

void ProcessTransport::Poke() {
  poked_.store(true, std::memory_order_relaxed);
  poll_.Wake();
}

// ---- Failure.

// Returns the failure to be told if `message`, which does not come from any rank, is not done.
Failure ProcessTransport::InVain(const Message& message) {
  const Peer& peer = peers_.At(message.peer);
  if (!peer.host.empty()) return {TimedOut(rank_, peer.Name(), message), peer.rank};
  return {absl::DeadlineExceededError(absl::StrCat(peer.Name(), " has not come to group '", name_,
                                                   "', missed in ", Text(message))),
          peer.rank};
}

// Asks `peer` whom it waits for, on both connections: one may be in the middle of a message.
void ProcessTransport::Ask(Rank peer) {
  const Peer& asked = peers_.At(peer);
  if (asked.out != nullptr) asked.out->SendNotice({Notice::kAsks});
  if (asked.in != nullptr) asked.in->SendNotice({Notice::kAsks});
}

// If another rank asked, says once whom this rank, which waits for `message`, waits for, and asks
// that rank in turn. A rank that computes does not answer.
void ProcessTransport::Answer(const Message& message) {
  if (!asked_ || answered_ || message.peer == kAnyRank) return;
  answered_ = true;
  Ask(message.peer);
  record_.RecordWait(rank_, InVain(message));
}

// Returns the failure at the end of the chain of ranks that wait for each other, which begins with
// `failure` and grows while the ranks that were asked answer.
Failure ProcessTransport::FollowWaits(const Failure& failure) {
  Failure cause = failure;
  const Instant end = Now() + kSearchTime;
  Instant decided = Now() + kQuietTime;
  do {  // At least once, even if this process has stood still since.
    const Instant next = Now() + kSearchPeriod;
    while (this->failure() == nullptr && Now() < next) HandleEvents(MillisUntil(next));
    Failure found = record_.FindRootCause(failure, Now() + kAnswerTime);
    if (found.rank != cause.rank) decided = Now() + kQuietTime;
    cause = std::move(found);
  } while (this->failure() == nullptr && Now() < std::min(decided, end));
  return cause;
}

// Ends the group because of `failure`, or because of a failure that another rank recorded first.
absl::Status ProcessTransport::FailGroup(Failure failure) {
  if (failure_.status.ok()) SetFailure(record_.RecordFirst(failure));
  return failure_.status;
}

// Tells the peers, and gives the memory of all messages back to the caller.
void ProcessTransport::SetFailure(Failure failure) {
  failure_ = std::move(failure);
  // A rank that dials is refused at once, and finds the failure in the store.
  connections_.Close();
  for (const auto& peer : peers_.all()) {
    if (peer == nullptr) continue;
    if (peer->in != nullptr) peer->in->SendNotice({Notice::kFailed, failure_});
    if (peer->out == nullptr) continue;
    peer->out->SendNotice({Notice::kFailed, failure_});
    peer->out->Withdraw();
  }
  sender_.Clear();
  receiver_.Clear();
}

}  // namespace hlaunch
