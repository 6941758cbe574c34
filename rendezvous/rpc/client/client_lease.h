// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/base/thread_annotations.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/round/values/lease.h"

namespace hlaunch {

// The lease that the rendezvous has given this node, and what the node knows of it: when it was
// last heard, and which silence is forgiven because this process stood still.
//
// Thread-safe. The client's thread alone changes it.
class ClientLease {
 public:
  // The client speaks to the rendezvous from `begun` on and has heard nothing yet.
  explicit ClientLease(Instant begun) : heard_(begun) {}
  // It continues what this node has heard in another way.
  ClientLease(const Lease& lease, Instant heard, Instant forgiven_until);

  Lease lease() const;
  void Renew(const Lease& lease);
  // The rendezvous has answered a message that was sent at `sent`.
  void Heard(Instant sent);
  // From now on allowances follow from the lease.
  void Begin();

  // The rendezvous has taken a sign of life of this process at `taken` in another way. It counts
  // for the loss limit beyond what the node itself has said, not for ever: a node that cannot be
  // reached is of no use.
  void TakenElsewhere(Instant taken);

  // The process wanted to wake up at `wanted` and did so `now`. Returns whether that is so much
  // later that it was stopped or starved: the silence in that time proves nothing, so the
  // rendezvous gets one more lease to be heard.
  bool WokeUp(Instant wanted, Instant now);

  // As the functions of these names in lease.h.
  Instant GiveUpAt() const;
  // Unset before Begin.
  std::optional<Allowance> AllowanceNow() const;

 private:
  Instant TakenLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  Lease lease_ ABSL_GUARDED_BY(mu_);
  Instant heard_ ABSL_GUARDED_BY(mu_);  // When our last message that was answered was sent.
  Instant taken_elsewhere_ ABSL_GUARDED_BY(mu_) = Instant::min();
  Instant forgiven_until_ ABSL_GUARDED_BY(mu_);  // Silence until then is not held against it.
  Instant awake_at_ ABSL_GUARDED_BY(mu_);        // When the client's thread last knew the time.
};

}  // namespace hlaunch
