// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/process_transport.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// What an event is about: the upper half says what, the lower half which rank.
enum EventTag : uint64_t {
  kDoor = 1ull << 32,
  kPoked = 2ull << 32,
  kOut = 3ull << 32,
  kIn = 4ull << 32
};
constexpr uint64_t kWhat = ~0ull << 32;

Instant Now() { return MonotonicClock().Now(); }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// The longest a rank stays deaf while the store or a peer's host does not answer.
constexpr auto kDeaf = std::chrono::milliseconds(50);
// For other ranks whose time is up to say for whom they waited.
constexpr auto kLastWord = std::chrono::milliseconds(200);
// How long nothing happens until this rank looks whether others call something else.
constexpr auto kLook = std::chrono::milliseconds(500);
// Streams that came before the first one of their link; more are no ranks of ours.
constexpr size_t kMostEarlySides = 4096;

}  // namespace

ProcessTransport::ProcessTransport(Store& store, Rank rank, int size,
                                   const ProcessTransportOptions& options, Door door,
                                   UniqueFd epoll, UniqueFd poke_event)
    : store_(store),
      rank_(rank),
      options_(options),
      // Whoever has the same can reach the same abstract sockets: unix(7), network_namespaces(7).
      host_(options.shared_memory ? HostNodeId(0) : ""),
      door_(std::move(door)),
      epoll_(std::move(epoll)),
      poke_event_(std::move(poke_event)),
      cores_(CpusToSpinOn()),
      plan_(PlanWait(options.local_ranks, cores_)),
      peers_(size) {
  for (const int fd : door_.fds()) Watch(fd, EPOLLIN, kDoor);
  Watch(poke_event_.get(), EPOLLIN, kPoked);
}

absl::StatusOr<std::unique_ptr<ProcessTransport>> ProcessTransport::Create(
    Store& store, Rank rank, int size, const ProcessTransportOptions& options) {
  HLAUNCH_ASSIGN_OR_RETURN(Door door, Door::Open(options.address));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd poke_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !poke_event.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  const std::string here = ToText(door.point());
  std::unique_ptr<ProcessTransport> transport(new ProcessTransport(
      store, rank, size, options, std::move(door), std::move(epoll), std::move(poke_event)));
  HLAUNCH_RETURN_IF_ERROR(store.Set(transport->Key(absl::StrCat(rank)), here));
  return transport;
}

ProcessTransport::~ProcessTransport() {
  LetIn();  // Those who still stand before the door hear it, too.
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    const News news{failure() == nullptr ? News::kLeft : News::kFailed, failure_,
                    peer->out != nullptr};
    if (peer->in != nullptr) peer->in->Tell(news);
    if (peer->out != nullptr) peer->out->Tell(news);
  }
}

ProcessTransport::Peer& ProcessTransport::At(Rank rank) {
  HLAUNCH_CHECK(rank >= 0 && rank < size() && rank != rank_);
  if (peers_[rank] == nullptr) {
    peers_[rank] = std::make_unique<Peer>();
    peers_[rank]->rank = rank;
  }
  return *peers_[rank];
}

std::string ProcessTransport::Name(const Peer& peer) const {
  return absl::StrCat("rank ", peer.rank, peer.host.empty() ? "" : " on ", peer.host);
}

std::string ProcessTransport::Key(absl::string_view what) const {
  return absl::StrCat("hlaunch/comm/", options_.name, "/", what);
}

void ProcessTransport::Watch(int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

// ---- Messages.

void ProcessTransport::Start(Outgoing* message) {
  if (failure() != nullptr) return;
  Peer& peer = At(message->peer);
  peer.sending.push_back(message);
  if (!peer.busy) {
    peer.busy = true;
    busy_.push_back(&peer);
  }
  if (peer.out != nullptr && Send(peer) && peer.sending.empty() && busy_.back() == &peer &&
      peer.out->Settled()) {
    busy_.pop_back();
    peer.busy = false;
  }
}

void ProcessTransport::Start(Incoming* message) {
  if (failure() != nullptr) return;
  if (message->peer == kAnyRank) {
    for (const auto& peer : peers_) {
      if (peer != nullptr && TakeEarly(*peer, message)) return;
    }
    any_.push_back(message);
    return;
  }
  Peer& peer = At(message->peer);
  if (TakeEarly(peer, message)) return;
  peer.receiving.push_back(message);
  Hope(peer);
}

void ProcessTransport::Hope(Peer& peer) {
  if (!peer.hoped) hoping_.push_back(&peer);
  peer.hoped = true;
}

bool ProcessTransport::Matches(Peer& peer, const Incoming& message, const FrameHead& head) {
  if (head.call == message.call && head.size == message.bytes.size()) return true;
  Found(
      {Mismatch(rank_, message, message.bytes.size(), Name(peer), head.call, head.size), peer.rank})
      .IgnoreError();
  return false;
}

bool ProcessTransport::TakeEarly(Peer& peer, Incoming* message) {
  // The one that is still arriving is the last and stays where it is.
  const auto end = peer.early.end() - (peer.taking_early ? 1 : 0);
  const auto it = std::find_if(peer.early.begin(), end, [&](const Early& early) {
    return SameLane(*message, early.head.call, early.head.number);
  });
  if (it == end) return false;
  message->peer = peer.rank;
  if (!Matches(peer, *message, it->head)) return true;
  std::copy(it->bytes.begin(), it->bytes.end(), message->bytes.begin());
  peer.early.erase(it);
  --early_count_;
  MarkDone(message);
  return true;
}

// Takes the oldest message out of those started that what begins with `head` is for.
Incoming* ProcessTransport::Asked(Peer& peer, const FrameHead& head) {
  for (std::vector<Incoming*>* const started : {&peer.receiving, &any_}) {
    const auto it = std::find_if(started->begin(), started->end(), [&](const Incoming* message) {
      return SameLane(*message, head.call, head.number);
    });
    if (it == started->end()) continue;
    Incoming* const message = *it;
    started->erase(it);
    message->peer = peer.rank;
    return message;
  }
  return nullptr;
}

// Whether `peer` is in another collective of the same number as this rank: then all is over.
bool ProcessTransport::IsMismatch(Peer& peer, const FrameHead& head) {
  if (entered_.call.verb == Verb::kSend || !SameLane(entered_, head.call, head.number) ||
      head.call == entered_.call) {
    return false;
  }
  Found({Mismatch(rank_, entered_, 0, Name(peer), head.call, 0), peer.rank}).IgnoreError();
  return true;
}

void ProcessTransport::FindMismatch() {
  for (const auto& peer : peers_) {
    if (peer == nullptr || peer->in == nullptr || peer->taking != nullptr) continue;
    if (peer->taking_early) continue;
    const FrameHead* const head = peer->in->Front();
    if (head != nullptr && IsMismatch(*peer, *head)) return;
  }
}

void ProcessTransport::Enter(const Call& call, uint64_t number) {
  entered_.call = call;
  entered_.number = number;
  if (early_count_ == 0) return;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    for (const Early& early : peer->early) {
      if (IsMismatch(*peer, early.head)) return;
    }
  }
}

// Takes what has come from `peer`, as far as somebody asked for it or for what lies behind it.
bool ProcessTransport::Receive(Peer& peer) {
  bool moved = false;
  while (peer.in != nullptr) {
    const bool taking = peer.taking != nullptr || peer.taking_early;
    if (!taking && peer.receiving.empty() && any_.empty()) return moved;
    const FrameHead* const head = peer.in->Front();
    if (head == nullptr) return moved;
    if (!taking) {
      Incoming* const message = Asked(peer, *head);
      if (message != nullptr) {
        if (!Matches(peer, *message, *head)) return true;
        peer.taking = message;
        Hope(peer);  // What was asked for from any rank is this one's now.
      } else {
        if (IsMismatch(peer, *head)) return true;
        peer.early.push_back({*head, std::vector<std::byte>(head->size)});
        ++early_count_;
        peer.taking_early = true;
      }
    }
    const auto into =
        peer.taking_early ? std::span<std::byte>(peer.early.back().bytes) : peer.taking->bytes;
    if (!peer.in->Take(into)) return moved;
    moved = moved_ = true;
    if (peer.taking != nullptr) {
      MarkDone(peer.taking);
      peer.taking = nullptr;
      continue;
    }
    peer.taking_early = false;
    // It may have been asked for while it arrived.
    if (Incoming* const message = Asked(peer, peer.early.back().head)) TakeEarly(peer, message);
  }
  return moved;
}

bool ProcessTransport::ReceiveFromAll() {
  bool moved = false;
  for (const auto& peer : peers_) moved |= peer != nullptr && Receive(*peer);
  return moved;
}

bool ProcessTransport::Send(Peer& peer) {
  bool moved = false;
  while (!peer.sending.empty() && peer.out->Push(peer.sending.front())) {
    peer.sending.pop_front();
    moved = true;
  }
  moved |= peer.out->Poll();
  moved_ |= moved;
  for (const auto sides = peer.out->side_fds(); peer.sides_watched < sides.size();) {
    Watch(sides[peer.sides_watched++], EPOLLOUT | EPOLLET, kOut | peer.rank);
  }
  return moved;
}

bool ProcessTransport::SendAll() {
  bool moved = false;
  std::erase_if(busy_, [&](Peer* peer) {
    if (peer->out == nullptr) return false;
    moved |= Send(*peer);
    peer->busy = !peer->sending.empty() || !peer->out->Settled();
    return !peer->busy;
  });
  return moved;
}

// Whether anything moved that `message` may depend on.
bool ProcessTransport::Move(const Message& message) {
  bool moved = !busy_.empty() && SendAll();
  return (message.peer == kAnyRank ? ReceiveFromAll() : Receive(*peers_[message.peer])) || moved;
}

absl::Status ProcessTransport::Progress(const Message& message, Instant until) {
  if (failure() != nullptr) return failure_.status;
  if (message.done) return absl::OkStatus();
  missed_ = &message;
  moved_ = false;
  for (int i = 0; !message.done; ++i) {
    if (poked_.load(std::memory_order_relaxed)) {
      poked_.store(false, std::memory_order_relaxed);
      HandleEvents(0);
      if (failure() == nullptr) break;
    }
    if (failure() != nullptr) return failure_.status;
    const bool moved = Move(message);
    // Also what moved before it slept, and while.
    if (moved_ && company()) break;
    if (moved) {
      i = 0;
    } else if (i < plan_.spins) {
      Pause();
    } else if (i < plan_.spins + plan_.yields) {
      ::sched_yield();
    } else {
      if (MonotonicClock().Now() >= until) break;
      HLAUNCH_RETURN_IF_ERROR(Sleep(message, until));
    }
  }
  missed_ = nullptr;
  return absl::OkStatus();
}

absl::Status ProcessTransport::GiveUp(const Message& message) {
  if (message.peer == kAnyRank) return Found({TimedOut(rank_, "any rank", message), -1});
  const Peer& peer = At(message.peer);
  if (!peer.host.empty()) return Found(EndOfChain(TimedOut(rank_, Name(peer), message), peer.rank));
  return Found(EndOfChain(
      absl::DeadlineExceededError(absl::StrCat(Name(peer), " has not come to group '",
                                               options_.name, "', missed in ", Text(message))),
      peer.rank));
}

// The rank that this one waited for may itself have waited for another, and be about to say so:
// its time began a little later. So all say it first, and then look who is at the end.
Failure ProcessTransport::EndOfChain(const absl::Status& mine, Rank awaited) {
  Failure cause{mine, awaited};
  const std::string key = Key("waits");
  if (!store_.Append(key, absl::StrCat(rank_, " ", awaited, " ", mine.message(), "\n")).ok()) {
    return cause;
  }
  const Instant until = Now() + kLastWord;
  while (failure() == nullptr && Now() < until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Now());
    HandleEvents(static_cast<int>(left.count()) + 1);
  }
  const absl::StatusOr<std::string> all = store_.Get(key, Now() + kDeaf);
  if (failure() != nullptr || !all.ok()) return cause;
  std::map<Rank, Failure> waits;
  for (const absl::string_view line : absl::StrSplit(*all, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    Rank who, whom;
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &who) ||
        !absl::SimpleAtoi(words[1], &whom)) {
      continue;
    }
    waits.emplace(who, Failure{absl::DeadlineExceededError(words[2]), whom});
  }
  for (size_t steps = 0; steps < waits.size(); ++steps) {
    const auto next = waits.find(cause.rank);
    if (next == waits.end()) return cause;
    cause = next->second;
  }
  return {mine, awaited};  // They wait for each other.
}

// ---- Ways to others.

// Nothing if the peer has not come yet.
absl::StatusOr<std::optional<MeetingPoint>> ProcessTransport::Find(Peer& peer, Instant until) {
  while (failure() == nullptr && !poked_.load(std::memory_order_relaxed)) {
    auto text = store_.Get(Key(absl::StrCat(peer.rank)), std::min(until, Now() + kDeaf));
    if (text.ok()) {
      HLAUNCH_ASSIGN_OR_RETURN(MeetingPoint point, ParseMeetingPoint(*text));
      peer.host = point.host;
      return point;
    }
    if (!absl::IsDeadlineExceeded(text.status())) return text.status();
    HandleEvents(0);
    if (Now() >= until) break;
  }
  return std::nullopt;
}

absl::Status ProcessTransport::Connect(Peer& peer, const Message& missed, Instant until) {
  auto point = Find(peer, until);
  if (failure() != nullptr) return failure_.status;
  if (!point.ok()) return Found({point.status(), peer.rank});
  if (!point->has_value()) return absl::OkStatus();
  auto link =
      Dial(**point, rank_, door_.point().host, options_.shared_memory, options_.streams, until);
  if (!link.ok()) {
    if (absl::IsDeadlineExceeded(link.status())) return absl::OkStatus();
    if (absl::IsUnavailable(link.status())) {
      // It may have come to us and left since; then the way to us has the rest of the story.
      peer.out_gone = true;
      LetIn();
      for (int i = 0; i < 20 && peer.in == nullptr && !door_.strangers().empty(); ++i) {
        HandleEvents(static_cast<int>(kDeaf.count()));
      }
      return peer.in != nullptr ? absl::OkStatus()
                                : Found({WentAway(Name(peer), &missed), peer.rank});
    }
    return Found({absl::Status(link.status().code(),
                               absl::StrCat("to ", Name(peer), ": ", link.status().message())),
                  peer.rank});
  }
  peer.out = *std::move(link);
  Watch(peer.out->fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, kOut | peer.rank);
  return absl::OkStatus();
}

void ProcessTransport::LetIn() {
  for (Caller& caller : door_.LetIn(options_.single_copy)) {
    if (caller.rank >= size() || caller.rank == rank_) continue;
    Peer& peer = At(caller.rank);
    if (caller.stream != 0) {
      early_sides_.push_back(std::move(caller));
      continue;
    }
    if (peer.in != nullptr) continue;
    peer.host = caller.host;
    peer.in = std::move(caller.link);
    Watch(peer.in->fd(), EPOLLIN | EPOLLRDHUP | EPOLLET, kIn | peer.rank);
    plan_ = PlanWait(std::max(options_.local_ranks, (local_peers_ += caller.local) + 1), cores_);
    // Whoever comes late hears what happened.
    if (failure() != nullptr) peer.in->Tell({News::kFailed, failure_});
  }
  std::erase_if(early_sides_, [&](Caller& caller) {
    Peer& peer = At(caller.rank);
    if (peer.in == nullptr) return early_sides_.size() > kMostEarlySides;
    const int fd = caller.side.get();
    if (peer.in->AddSide(caller.stream, std::move(caller.side))) {
      Watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, kIn | peer.rank);
    }
    return true;
  });
  for (const int fd : door_.strangers()) Watch(fd, EPOLLIN, kDoor);
}

// ---- Waiting.

// False if something can be done without sleeping.
bool ProcessTransport::ArmAll() {
  if (!any_.empty()) {
    for (const auto& other : peers_) {
      if (other != nullptr && other->in != nullptr && !other->in->Arm()) return false;
    }
  }
  for (Peer* other : hoping_) {
    if (other->in != nullptr && !other->in->Arm()) return false;
  }
  for (Peer* other : busy_) {
    if (other->out != nullptr && !other->out->Arm()) return false;
  }
  return true;
}

absl::Status ProcessTransport::Sleep(const Message& message, Instant until) {
  // A way to those who wait for us and to the one we wait for: on it news comes.
  for (Peer* other : busy_) {
    if (other->out_gone) return Found({WentAway(Name(*other), &message), other->rank});
    if (other->out == nullptr) return Connect(*other, message, until);
  }
  if (message.peer != kAnyRank) {
    Peer& peer = At(message.peer);
    if (peer.out == nullptr && !peer.out_gone) return Connect(peer, message, until);
    if (HasLeft(peer, message)) return Found({Left(Name(peer), message), peer.rank});
  } else if (AllHaveLeft()) {
    return Found({Left("everybody", message), -1});
  }

  // What others send may be what they wait for to be taken.
  bool moved = false;
  for (size_t i = 0; i < hoping_.size(); ++i) moved |= Receive(*hoping_[i]);  // Empty if it fails.
  if (!any_.empty()) moved |= ReceiveFromAll();
  std::erase_if(hoping_, [](Peer* other) {
    other->hoped = !other->receiving.empty() || other->taking != nullptr;
    return !other->hoped;
  });
  if (moved || failure() != nullptr) return failure_.status;
  if (ArmAll()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Now());
    const auto millis = std::clamp<int64_t>(left.count() + 1, 1, kLook.count());
    if (HandleEvents(static_cast<int>(millis)) == 0) FindMismatch();
  } else {
    HandleEvents(0);
    for (size_t i = 0; i < hoping_.size(); ++i) {  // Empty if one failed.
      if (hoping_[i]->in != nullptr) HearIn(*hoping_[i]);
    }
  }
  return failure_.status;
}

int ProcessTransport::HandleEvents(int millis) {
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, millis);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if ((tag & kWhat) == kDoor) {
      LetIn();
    } else if ((tag & kWhat) == kPoked) {
      HearPoke();
    } else {
      Peer& peer = At(static_cast<Rank>(tag & ~kWhat));
      if ((tag & kWhat) == kOut) {
        HearOut(peer);
      } else {
        Receive(peer);
        HearIn(peer);
      }
    }
  }
  return count;
}

void ProcessTransport::HearPoke() {
  uint64_t ignored;
  if (::read(poke_event_.get(), &ignored, sizeof ignored) < 0) return;
  std::optional<std::string> why;
  {
    MutexLock lock(&mu_);
    why = abort_reason_;
  }
  if (!why.has_value()) return;
  Found({absl::CancelledError(absl::StrCat("rank ", rank_, " on ", door_.point().host, ": ", *why)),
         rank_})
      .IgnoreError();
}

bool ProcessTransport::AllHaveLeft() const {
  for (Rank rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    const auto& peer = peers_[rank];
    if (peer == nullptr || !(peer->left_in || (peer->left_out && !peer->sends))) return false;
  }
  return true;
}

// Whether `message` will never be done because its peer left in peace.
bool ProcessTransport::HasLeft(const Peer& peer, const Message& message) const {
  const bool incoming =
      std::find(peer.receiving.begin(), peer.receiving.end(), &message) != peer.receiving.end() ||
      peer.taking == &message;
  if (!incoming) return peer.left_in || peer.left_out;
  return peer.left_in || (peer.left_out && !peer.sends);
}

// Whether the way ended without a goodbye.
bool ProcessTransport::Heard(Peer& peer, const std::vector<News>& heard, bool* left) {
  for (const News& news : heard) {
    if (failure() != nullptr) return false;
    if (news.kind == News::kFailed) Fail(news.failure);
    if (news.kind == News::kGone) return !peer.left_in && !peer.left_out;
    if (news.kind == News::kLeft) {
      *left = true;
      peer.sends = news.sends;
    }
  }
  return false;
}

// One who leaves may close the way to it before it saw us come; what it said on the way to us
// counts.
void ProcessTransport::HearOut(Peer& peer) {
  if (!Heard(peer, peer.out->Hear(), &peer.left_out)) return;
  peer.out_gone = true;
  LetIn();
  if (peer.in == nullptr) Found({WentAway(Name(peer), missed_), peer.rank}).IgnoreError();
}

void ProcessTransport::HearIn(Peer& peer) {
  if (Heard(peer, peer.in->Hear(), &peer.left_in)) {
    Found({WentAway(Name(peer), missed_), peer.rank}).IgnoreError();
  }
}

// ---- Failure.

// The first to find one writes it down for all; whoever finds what follows from it learns the
// cause.
absl::Status ProcessTransport::Found(Failure failure) {
  if (!failure_.status.ok()) return failure_.status;
  const NewsPacket packet = Pack({News::kFailed, failure});
  const absl::string_view mine(reinterpret_cast<const char*>(&packet), sizeof packet);
  const auto first = store_.CompareAndSet(Key("failure"), "", mine);
  if (first.ok() && first->size() == sizeof packet) {
    NewsPacket theirs;
    std::memcpy(&theirs, first->data(), sizeof theirs);
    if (News news = Unpack(theirs); news.kind == News::kFailed) failure = news.failure;
  }
  Fail(std::move(failure));
  return failure_.status;
}

void ProcessTransport::Fail(Failure failure) {
  failure_ = std::move(failure);
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    if (peer->in != nullptr) peer->in->Tell({News::kFailed, failure_});
    if (peer->out != nullptr) {
      peer->out->Tell({News::kFailed, failure_});
      peer->out->Withdraw();
    }
    peer->sending.clear();
    peer->receiving.clear();
    peer->taking = nullptr;
    peer->busy = false;
  }
  busy_.clear();
  for (Peer* peer : hoping_) peer->hoped = false;
  hoping_.clear();
  any_.clear();
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
  const uint64_t one = 1;
  if (::write(poke_event_.get(), &one, sizeof one) < 0) return;  // Full: it is set already.
}

}  // namespace hlaunch
