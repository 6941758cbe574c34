// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/loopback_transport.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"

namespace hlaunch {
namespace {

// What has been sent and not yet received.
struct Parcel {
  Call call;
  uint64_t number;
  std::vector<std::byte> bytes;
};

std::string Name(Rank rank) { return absl::StrCat("rank ", rank); }

}  // namespace

struct LoopbackTransport::World {
  explicit World(int size_in) : size(size_in), parcels(size * size), left(size) {}

  std::deque<Parcel>& Between(Rank from, Rank to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return parcels[from * size + to];
  }
  void Fail(Failure why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (!failure.has_value()) failure = std::move(why);
    changed.SignalAll();
  }

  const int size;
  Mutex mu;
  CondVar changed;
  std::vector<std::deque<Parcel>> parcels ABSL_GUARDED_BY(mu);
  std::vector<bool> left ABSL_GUARDED_BY(mu);
  std::optional<Failure> failure ABSL_GUARDED_BY(mu);
};

LoopbackTransport::LoopbackTransport(std::shared_ptr<World> world, Rank rank)
    : world_(std::move(world)), rank_(rank) {}

std::vector<std::unique_ptr<LoopbackTransport>> LoopbackTransport::MakeGroup(int size) {
  auto world = std::make_shared<World>(size);
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

void LoopbackTransport::Start(Outgoing* message) {
  MutexLock lock(&world_->mu);
  world_->Between(rank_, message->peer)
      .push_back({message->call, message->number, {message->bytes.begin(), message->bytes.end()}});
  message->done = true;
  world_->changed.SignalAll();
}

void LoopbackTransport::Start(Incoming* message) { receiving_.push_back(message); }

absl::Status LoopbackTransport::Wait(const Message& message, Instant deadline) {
  MutexLock lock(&world_->mu);
  while (true) {
    if (vanished_) return WentAway(Name(rank_), &message);
    if (world_->failure.has_value()) failure_ = *world_->failure;
    if (!failure_.status.ok()) return failure_.status;
    if (message.done) return absl::OkStatus();

    std::deque<Parcel>& parcels = world_->Between(message.peer, rank_);
    // The oldest receive that the parcel belongs to; it need not be the one that is waited for.
    for (auto it = receiving_.begin(); it != receiving_.end();) {
      Incoming& wanted = **it;
      const auto parcel = std::find_if(parcels.begin(), parcels.end(), [&](const Parcel& p) {
        return SameLane(wanted, p.call, p.number);
      });
      if (wanted.peer != message.peer || parcel == parcels.end()) {
        ++it;
        continue;
      }
      if (wanted.call != parcel->call || wanted.bytes.size() != parcel->bytes.size()) {
        world_->Fail({Mismatch(rank_, wanted, wanted.bytes.size(), Name(wanted.peer), parcel->call,
                               parcel->bytes.size()),
                      wanted.peer});
        break;
      }
      std::copy(parcel->bytes.begin(), parcel->bytes.end(), wanted.bytes.begin());
      wanted.done = true;
      parcels.erase(parcel);
      it = receiving_.erase(it);
    }
    if (message.done || world_->failure.has_value()) continue;
    if (world_->left[message.peer]) {
      world_->Fail({Left(Name(message.peer), message), message.peer});
    } else if (!world_->changed.WaitUntil(&world_->mu, deadline)) {
      world_->Fail({TimedOut(rank_, Name(message.peer), message), message.peer});
    }
  }
}

const Failure* LoopbackTransport::failure() const {
  return failure_.status.ok() ? nullptr : &failure_;
}

void LoopbackTransport::Abort(const std::string& why) {
  MutexLock lock(&world_->mu);
  world_->Fail({absl::CancelledError(absl::StrCat(Name(rank_), ": ", why)), rank_});
}

void LoopbackTransport::Vanish() {
  MutexLock lock(&world_->mu);
  vanished_ = true;
  world_->Fail({WentAway(Name(rank_), nullptr), rank_});
}

}  // namespace hlaunch
