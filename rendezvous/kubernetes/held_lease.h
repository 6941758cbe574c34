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
#include "rendezvous/kubernetes/api_client.h"
#include "rendezvous/kubernetes/api_objects.h"
#include "rendezvous/kubernetes/lease_sight.h"

namespace hlaunch {

// A Lease of Kubernetes that this process holds: renewed at a third of its time, and lost a fifth
// before its end, since clocks may go apart.
//
// Thread-safe. Its thread is "kube-lease". Destruction lets another have it at once.
class HeldLease {
 public:
  // Tries once to take it for `holder`, whom no other process is called. `sight` is what earlier
  // tries have seen.
  //
  // Errors:
  //   AlreadyExists - another holds it; the message is its name.
  //   others - as ApiClient.
  static absl::StatusOr<std::unique_ptr<HeldLease>> Take(std::shared_ptr<ApiClient> client,
                                                         ApiPlace place, std::string holder,
                                                         Duration whole, LeaseSight& sight);
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;

  // Renews it now: nobody else has held it since it was taken.
  //
  // Errors:
  //   Aborted - it is lost.
  //   others - as ApiClient.
  absl::Status Confirm();

  // Nobody else holds it before that. Once it is past, it is lost.
  Instant HeldUntil() const;

  // Gives it up, says `why` if that is news, and returns Aborted.
  absl::Status Lose(absl::string_view why);

  // Who holds it, and for which time.
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

  const std::shared_ptr<ApiClient> client_;  // Shared with whoever tries again.
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
  std::string trouble_ ABSL_GUARDED_BY(mu_);  // Of the last renewal.

  std::thread thread_;
};

}  // namespace hlaunch
