// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// What an event is about: the upper half says what, the lower half which rank.
enum EventTag : uint64_t {
  kDoor = 1ull << 32,
  kAborted = 2ull << 32,
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

}  // namespace

ProcessTransport::ProcessTransport(Store& store, Rank rank, int size,
                                   const ProcessTransportOptions& options, Door door,
                                   UniqueFd epoll, UniqueFd aborted)
    : store_(store),
      rank_(rank),
      options_(options),
      door_(std::move(door)),
      epoll_(std::move(epoll)),
      abort_event_(std::move(aborted)),
      cores_(UsableCores()),
      plan_(PlanWait(options.local_ranks, cores_)),
      peers_(size) {
  for (const int fd : door_.fds()) Watch(fd, EPOLLIN, kDoor);
  Watch(abort_event_.get(), EPOLLIN, kAborted);
}

absl::StatusOr<std::unique_ptr<ProcessTransport>> ProcessTransport::Create(
    Store& store, Rank rank, int size, const ProcessTransportOptions& options) {
  HLAUNCH_ASSIGN_OR_RETURN(Door door, Door::Open(options.address));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd aborted(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !aborted.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  const std::string here = ToText(door.point());
  std::unique_ptr<ProcessTransport> transport(new ProcessTransport(
      store, rank, size, options, std::move(door), std::move(epoll), std::move(aborted)));
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
  Peer& peer = At(message->peer);
  if (TakeEarly(peer, message)) return;
  peer.receiving.push_back(message);
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
  if (!Matches(peer, *message, it->head)) return true;
  std::copy(it->bytes.begin(), it->bytes.end(), message->bytes.begin());
  peer.early.erase(it);
  message->done = true;
  return true;
}

// Takes what has come from `peer`, as far as somebody asked for it or for what lies behind it.
bool ProcessTransport::Receive(Peer& peer) {
  bool moved = false;
  while (peer.in != nullptr) {
    const FrameHead* const head = peer.in->Front();
    if (head == nullptr) return moved;
    if (peer.taking == nullptr && !peer.taking_early) {
      if (peer.receiving.empty()) return moved;
      const auto it = std::find_if(
          peer.receiving.begin(), peer.receiving.end(),
          [&](const Incoming* message) { return SameLane(*message, head->call, head->number); });
      if (it != peer.receiving.end()) {
        if (!Matches(peer, **it, *head)) return true;
        peer.taking = *it;
        peer.receiving.erase(it);
      } else {
        peer.early.push_back({*head, std::vector<std::byte>(head->size)});
        peer.taking_early = true;
      }
    }
    const auto into =
        peer.taking_early ? std::span<std::byte>(peer.early.back().bytes) : peer.taking->bytes;
    if (!peer.in->Take(into)) return moved;
    moved = true;
    if (peer.taking != nullptr) {
      peer.taking->done = true;
      peer.taking = nullptr;
      continue;
    }
    peer.taking_early = false;
    // It may have been asked for while it arrived.
    const FrameHead arrived = peer.early.back().head;
    const auto it = std::find_if(
        peer.receiving.begin(), peer.receiving.end(),
        [&](const Incoming* message) { return SameLane(*message, arrived.call, arrived.number); });
    if (it != peer.receiving.end()) {
      Incoming* const message = *it;
      peer.receiving.erase(it);
      TakeEarly(peer, message);
    }
  }
  return moved;
}

bool ProcessTransport::Send(Peer& peer) {
  bool moved = false;
  while (!peer.sending.empty() && peer.out->Push(peer.sending.front())) {
    peer.sending.pop_front();
    moved = true;
  }
  peer.out->Poll();
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

bool ProcessTransport::Progress(Peer& peer) {
  const bool sent = !busy_.empty() && SendAll();
  return Receive(peer) || sent;
}

absl::Status ProcessTransport::Wait(const Message& message, Instant deadline) {
  if (aborted_.load(std::memory_order_relaxed)) HandleEvents(0);
  if (failure() != nullptr) return failure_.status;
  if (message.done) return absl::OkStatus();
  Peer& peer = At(message.peer);
  missed_ = &message;
  for (int i = 0; !message.done; ++i) {
    if (failure() != nullptr) return failure_.status;
    const bool moved = Progress(peer);
    if (message.done) break;
    if (moved) {
      i = 0;
    } else if (i < plan_.spins) {
      Pause();
    } else if (i < plan_.spins + plan_.yields) {
      ::sched_yield();
    } else {
      HLAUNCH_RETURN_IF_ERROR(Sleep(peer, message, deadline));
    }
  }
  missed_ = nullptr;
  return absl::OkStatus();
}

// ---- Ways to others.

absl::StatusOr<MeetingPoint> ProcessTransport::Find(Peer& peer, const Message& missed,
                                                    Instant deadline) {
  while (failure() == nullptr) {
    auto text = store_.Get(Key(absl::StrCat(peer.rank)), std::min(deadline, Now() + kDeaf));
    if (text.ok()) {
      HLAUNCH_ASSIGN_OR_RETURN(MeetingPoint point, ParseMeetingPoint(*text));
      peer.host = point.host;
      return point;
    }
    if (!absl::IsDeadlineExceeded(text.status())) return text.status();
    HandleEvents(0);
    if (Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          Name(peer), " has not come to group '", options_.name, "', missed in ", Text(missed)));
    }
  }
  return failure_.status;
}

absl::Status ProcessTransport::Connect(Peer& peer, const Message& missed, Instant deadline) {
  auto point = Find(peer, missed, deadline);
  if (failure() != nullptr) return failure_.status;
  if (!point.ok()) return Found({point.status(), peer.rank});
  auto link = Dial(*point, rank_, door_.point().host, options_.shared_memory, deadline);
  if (!link.ok()) {
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
  for (Caller& caller : door_.LetIn()) {
    if (caller.rank >= size() || caller.rank == rank_) continue;
    Peer& peer = At(caller.rank);
    if (peer.in != nullptr) continue;
    peer.host = caller.host;
    peer.in = std::move(caller.link);
    Watch(peer.in->fd(), EPOLLIN | EPOLLRDHUP | EPOLLET, kIn | peer.rank);
    plan_ = PlanWait(std::max(options_.local_ranks, (local_peers_ += caller.local) + 1), cores_);
    // Whoever comes late hears what happened.
    if (failure() != nullptr) peer.in->Tell({News::kFailed, failure_});
  }
  for (const int fd : door_.strangers()) Watch(fd, EPOLLIN, kDoor);
}

// ---- Waiting.

// False if something can be done without sleeping.
bool ProcessTransport::ArmAll() {
  for (Peer* other : hoping_) {
    if (other->in != nullptr && !other->in->Arm()) return false;
  }
  for (Peer* other : busy_) {
    if (other->out != nullptr && !other->out->Arm()) return false;
  }
  return true;
}

absl::Status ProcessTransport::Sleep(Peer& peer, const Message& message, Instant deadline) {
  // A way to those who wait for us and to the one we wait for: on it news comes.
  for (Peer* other : busy_) {
    if (other->out_gone) return Found({WentAway(Name(*other), &message), other->rank});
    if (other->out == nullptr) return Connect(*other, message, deadline);
  }
  if (peer.out == nullptr && !peer.out_gone) return Connect(peer, message, deadline);
  if (HasLeft(peer, message)) return Found({Left(Name(peer), message), peer.rank});

  const Instant now = Now();
  if (now >= deadline) return Found({TimedOut(rank_, Name(peer), message), peer.rank});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
  // What others send may be what they wait for to be taken.
  bool moved = false;
  for (size_t i = 0; i < hoping_.size(); ++i) moved |= Receive(*hoping_[i]);  // Empty if it fails.
  std::erase_if(hoping_, [](Peer* other) {
    other->hoped = !other->receiving.empty() || other->taking != nullptr;
    return !other->hoped;
  });
  if (moved || failure() != nullptr) return failure_.status;
  if (ArmAll()) {
    HandleEvents(static_cast<int>(std::clamp<int64_t>(left.count() + 1, 1, 60'000)));
  } else {
    HandleEvents(0);
    for (size_t i = 0; i < hoping_.size(); ++i) {  // Empty if one failed.
      if (hoping_[i]->in != nullptr) HearIn(*hoping_[i]);
    }
  }
  return absl::OkStatus();
}

void ProcessTransport::HandleEvents(int millis) {
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, millis);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if ((tag & kWhat) == kDoor) {
      LetIn();
    } else if ((tag & kWhat) == kAborted) {
      uint64_t ignored;
      if (::read(abort_event_.get(), &ignored, sizeof ignored) < 0) continue;
      std::string why;
      {
        MutexLock lock(&mu_);
        why = abort_reason_;
      }
      Found({absl::CancelledError(
                 absl::StrCat("rank ", rank_, " on ", door_.point().host, ": ", why)),
             rank_})
          .IgnoreError();
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
}

void ProcessTransport::Abort(const std::string& why) {
  {
    MutexLock lock(&mu_);
    abort_reason_ = why;
  }
  aborted_.store(true, std::memory_order_relaxed);
  const uint64_t one = 1;
  if (::write(abort_event_.get(), &one, sizeof one) < 0) return;  // Full: it is set already.
}

}  // namespace hlaunch
