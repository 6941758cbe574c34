// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/failover/kubernetes/api_client.h"
#include "rendezvous/failover/kubernetes/api_objects.h"
#include "rendezvous/failover/kubernetes/lease_sight.h"

namespace hlaunch {

// A Lease of Kubernetes that this process holds. It is renewed after a third of its duration, and
// counts as lost a fifth before its end, since clocks may drift apart.
//
// Its thread is "kube-lease". Destruction lets another process take the lease at once. Thread-safe.
class HeldLease {
 public:
  // Tries once to take the lease for `holder`, a name that no other process has. `sight` is what
  // earlier tries have seen.
  //
  // Errors:
  //   AlreadyExists - another process holds it; the message is that process' name.
  //   others - as ApiClient.
  static absl::StatusOr<std::unique_ptr<HeldLease>> Take(std::shared_ptr<ApiClient> client,
                                                         ApiPlace place, std::string holder,
                                                         Duration whole, LeaseSight& sight);
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;

  // Renews the lease now. OK means that no other process has held it since Take.
  //
  // Errors:
  //   Aborted - the lease is lost.
  //   others - as ApiClient.
  absl::Status Confirm();

  // Returns the time until which no other process holds the lease; Instant() if the lease is lost.
  // The lease is lost once that time has passed.
  Instant HeldUntil() const;

  // Gives up the lease, logs `why` unless it was lost before, and returns Aborted.
  absl::Status Lose(absl::string_view why);

  // Names the holder and its term: "HOLDER/TRANSITIONS".
  const std::string& term() const { return term_; }

 private:
  HeldLease(std::shared_ptr<ApiClient> client, ApiPlace place, std::string holder, Duration whole)
      : client_(std::move(client)),
        place_(std::move(place)),
        holder_(std::move(holder)),
        whole_(whole) {}

  absl::Status Begin(LeaseSight& sight);
  absl::Status Write(const LeaseObject& lease, Instant deadline, int* status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  absl::Status Reread(Instant deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  void KeepUp();
  void Release();
  Instant HeldUntilLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoseLocked(absl::string_view why) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<ApiClient> client_;  // Shared with the candidate.
  const ApiPlace place_;
  const std::string holder_;
  const Duration whole_;
  std::string term_;

  Mutex turn_;  // One renewal at a time.
  LeaseObject lease_ ABSL_GUARDED_BY(turn_);

  mutable Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  Instant until_ ABSL_GUARDED_BY(mu_);
  mutable bool lost_ ABSL_GUARDED_BY(mu_) = false;
  std::string trouble_ ABSL_GUARDED_BY(mu_);  // Why the last renewal failed; else empty.

  std::thread thread_;
};

}  // namespace hlaunch
