// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/client_lease.h"

#include <algorithm>

namespace hlaunch {

ClientLease::ClientLease(const Lease& lease, Instant heard, Instant forgiven_until)
    : begun_(true), lease_(lease), heard_(heard), forgiven_until_(forgiven_until) {}

Lease ClientLease::lease() const {
  MutexLock lock(&mu_);
  return lease_;
}

void ClientLease::Renew(const Lease& lease) {
  MutexLock lock(&mu_);
  lease_ = lease;
}

void ClientLease::Heard(Instant sent) {
  MutexLock lock(&mu_);
  heard_ = std::max(heard_, sent);
}

void ClientLease::Begin() {
  MutexLock lock(&mu_);
  begun_ = true;
}

void ClientLease::TakenElsewhere(Instant taken) {
  MutexLock lock(&mu_);
  if (!begun_ || taken > heard_ + lease_.loss_limit) return;
  taken_elsewhere_ = std::max(taken_elsewhere_, taken);
}

bool ClientLease::WokeUp(Instant wanted, Instant now) {
  MutexLock lock(&mu_);
  awake_at_ = now;
  if (now - wanted < lease_.lease / 2) return false;
  forgiven_until_ = ForgivenUntil(lease_, TakenLocked(), forgiven_until_, wanted, now);
  return true;
}

Instant ClientLease::TakenLocked() const { return std::max(heard_, taken_elsewhere_); }

Instant ClientLease::GiveUpAt() const {
  MutexLock lock(&mu_);
  return hlaunch::GiveUpAt(lease_, TakenLocked(), forgiven_until_);
}

std::optional<Allowance> ClientLease::AllowanceNow() const {
  MutexLock lock(&mu_);
  if (!begun_) return std::nullopt;
  Allowance allowance = AllowanceAt(lease_, TakenLocked(), forgiven_until_);
  allowance.as_of = awake_at_;
  return allowance;
}

}  // namespace hlaunch
