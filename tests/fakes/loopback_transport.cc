// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/fakes/loopback_transport.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"

namespace hlaunch {
namespace {

// A message that was sent but not received yet.
struct Parcel {
  Call call;
  uint64_t number;
  std::vector<std::byte> bytes;
};

std::string Name(Rank rank) { return absl::StrCat("rank ", rank); }

}  // namespace

struct LoopbackTransport::World {
  World(int size_in, int per_host_in)
      : size(size_in),
        per_host(per_host_in),
        parcels(size * size),
        left(size),
        gone(size),
        goodbyes(size),
        poked(size) {}

  std::deque<Parcel>& Between(Rank from, Rank to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return parcels[from * size + to];
  }
  void Fail(Failure why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (!failure.has_value()) failure = std::move(why);
    changed.SignalAll();
  }

  // Gives `self` the messages from `from` that it has asked for; returns whether there were any.
  bool TakeAll(Rank from, Rank self, std::vector<Incoming*>* receiving)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Fails the group if another rank has sent `self` a message of another call with the number of
  // the call that `self` has entered.
  void FindMismatch(Rank self, const Message& entered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const int size, per_host;
  Mutex mu;
  CondVar changed;
  std::vector<std::deque<Parcel>> parcels ABSL_GUARDED_BY(mu);
  std::vector<bool> left ABSL_GUARDED_BY(mu), gone ABSL_GUARDED_BY(mu);
  std::vector<std::string> goodbyes ABSL_GUARDED_BY(mu);
  std::vector<char> poked ABSL_GUARDED_BY(mu);
  std::optional<Failure> failure ABSL_GUARDED_BY(mu);
};

bool LoopbackTransport::World::TakeAll(Rank from, Rank self, std::vector<Incoming*>* receiving) {
  bool moved = false;
  std::deque<Parcel>& sent = Between(from, self);
  // The oldest receive gets the parcel, even if `self` waits for another receive.
  for (auto it = receiving->begin(); it != receiving->end();) {
    Incoming& wanted = **it;
    const auto parcel = std::find_if(sent.begin(), sent.end(), [&](const Parcel& p) {
      return SameLane(wanted, p.call, p.number);
    });
    if ((wanted.peer != from && wanted.peer != kAnyRank) || parcel == sent.end()) {
      ++it;
      continue;
    }
    wanted.peer = from;
    if (wanted.call != parcel->call || wanted.bytes.size() != parcel->bytes.size()) {
      Fail({Mismatch(self, wanted, wanted.bytes.size(), Name(from), parcel->call,
                     parcel->bytes.size()),
            from});
      return false;
    }
    std::copy(parcel->bytes.begin(), parcel->bytes.end(), wanted.bytes.begin());
    MarkDone(&wanted);
    sent.erase(parcel);
    it = receiving->erase(it);
    moved = true;
  }
  return moved;
}

void LoopbackTransport::World::FindMismatch(Rank self, const Message& entered) {
  for (Rank from = 0; from < size; ++from) {
    for (const Parcel& parcel : Between(from, self)) {
      if (!SameLane(entered, parcel.call, parcel.number) || parcel.call == entered.call) continue;
      return Fail({Mismatch(self, entered, 0, Name(from), parcel.call, 0), from});
    }
  }
}

LoopbackTransport::LoopbackTransport(std::shared_ptr<World> world, Rank rank)
    : world_(std::move(world)), rank_(rank) {}

std::vector<std::unique_ptr<LoopbackTransport>> LoopbackTransport::MakeGroup(int size,
                                                                             int per_host) {
  auto world = std::make_shared<World>(size, per_host);
  std::vector<std::unique_ptr<LoopbackTransport>> ranks;
  for (Rank rank = 0; rank < size; ++rank) {
    ranks.emplace_back(new LoopbackTransport(world, rank));
  }
  return ranks;
}

LoopbackTransport::~LoopbackTransport() {
  MutexLock lock(&world_->mu);
  world_->left[rank_] = true;
  world_->changed.SignalAll();
}

int LoopbackTransport::size() const { return world_->size; }

std::string LoopbackTransport::host() const {
  return absl::StrCat("loopback", world_->per_host == 0 ? 0 : rank_ / world_->per_host);
}

void LoopbackTransport::Start(Outgoing* message) {
  MutexLock lock(&world_->mu);
  world_->Between(rank_, message->peer)
      .push_back({message->call, message->number, {message->bytes.begin(), message->bytes.end()}});
  MarkDone(message);
  world_->changed.SignalAll();
}

void LoopbackTransport::Start(Incoming* message) { receiving_.push_back(message); }

void LoopbackTransport::Enter(const Call& call, uint64_t number) {
  entered_.call = call;
  entered_.number = number;
}

absl::Status LoopbackTransport::Progress(const Message& message, Instant until) {
  MutexLock lock(&world_->mu);
  while (true) {
    if (vanished_) return WentAway(Name(rank_), &message);
    if (world_->failure.has_value()) failure_ = *world_->failure;
    if (!failure_.status.ok()) return failure_.status;
    if (message.done) return absl::OkStatus();

    bool moved = false;
    for (Rank from = 0; from < size(); ++from) moved |= world_->TakeAll(from, rank_, &receiving_);
    if (entered_.call.verb != Verb::kSend) world_->FindMismatch(rank_, entered_);
    if (message.done || world_->failure.has_value()) continue;
    if (std::exchange(world_->poked[rank_], 0) != 0 || (moved && others_wait())) {
      return absl::OkStatus();
    }
    if (message.peer != kAnyRank && world_->gone[message.peer]) {
      world_->Fail({WentAway(Name(message.peer), &message), message.peer});
    } else if (message.peer != kAnyRank && world_->left[message.peer]) {
      world_->Fail(
          {Left(Name(message.peer), message, world_->goodbyes[message.peer]), message.peer});
    } else if (!world_->changed.WaitUntil(&world_->mu, until)) {
      return absl::OkStatus();
    }
  }
}

absl::Status LoopbackTransport::End(Failure why) {
  MutexLock lock(&world_->mu);
  world_->Fail(std::move(why));
  failure_ = *world_->failure;
  return failure_.status;
}

absl::Status LoopbackTransport::GiveUp(const Message& message) {
  const std::string whom = message.peer == kAnyRank ? "any rank" : Name(message.peer);
  return End({TimedOut(rank_, whom, message), message.peer});
}

void LoopbackTransport::Poke() {
  MutexLock lock(&world_->mu);
  world_->poked[rank_] = 1;
  world_->changed.SignalAll();
}

const Failure* LoopbackTransport::failure() const {
  return failure_.status.ok() ? nullptr : &failure_;
}

void LoopbackTransport::Abort(const std::string& why) {
  MutexLock lock(&world_->mu);
  world_->Fail({absl::CancelledError(absl::StrCat(Name(rank_), ": ", why)), rank_});
}

void LoopbackTransport::SayGoodbye(const std::string& why) {
  MutexLock lock(&world_->mu);
  world_->goodbyes[rank_] = why;
}

void LoopbackTransport::Vanish() {
  MutexLock lock(&world_->mu);
  vanished_ = world_->gone[rank_] = true;
  world_->changed.SignalAll();
}

}  // namespace hlaunch
