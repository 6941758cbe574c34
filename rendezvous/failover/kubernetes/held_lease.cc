// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/held_lease.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/log.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLastWord = seconds(3);
constexpr Duration kAgain = milliseconds(500);  // Before a failed renewal is tried again.
constexpr int kMarginShare = 5;                 // The margin is 1/5 of the lease: clocks may drift.
constexpr int kMostRereads = 3;                 // If people change the object meanwhile.

// Another process holds the lease. Its name, "node0:29400_1f2e…", may contain any bytes.
absl::Status Holds(const std::string& holder) {
  constexpr size_t kMaxName = 255;
  return absl::AlreadyExistsError(
      absl::CEscape(holder.substr(0, std::min(kMaxName, holder.find('_')))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeldLease>> HeldLease::Take(std::shared_ptr<ApiClient> client,
                                                           ApiPlace place, std::string holder,
                                                           Duration whole, LeaseSight& sight) {
  std::unique_ptr<HeldLease> held(
      new HeldLease(std::move(client), std::move(place), std::move(holder), whole));
  HLAUNCH_RETURN_IF_ERROR(held->Begin(sight));
  try {
    held->thread_ = std::thread([self = held.get()] {
      ::pthread_setname_np(::pthread_self(), "kube-lease");
      self->KeepUp();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for the lease: ", error.code().message()));
  }
  return held;
}

HeldLease::~HeldLease() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    stopped_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  Release();
}

absl::Status HeldLease::Begin(LeaseSight& sight) {
  HLAUNCH_ASSIGN_OR_RETURN(const auto read, client_->Call({"GET", LeasePath(place_), "", ""},
                                                          Now() + ApiClient::kPatience));
  LeaseObject lease;
  if (read.status != 404) {
    HLAUNCH_ASSIGN_OR_RETURN(lease, ReadLease(read.body));
    if (lease.holder != holder_ && !sight.HasRunOut(lease, Now())) return Holds(lease.holder);
  }
  lease.holder = holder_;
  lease.seconds = std::max<int64_t>(1, whole_ / seconds(1));
  lease.renewed = lease.acquired = MicroTime(WallMillis());
  ++lease.transitions;
  const Instant sent = Now();
  int status = 0;
  MutexLock turn(&turn_);
  HLAUNCH_RETURN_IF_ERROR(Write(lease, sent + ApiClient::kPatience, &status));
  if (status == 404) {
    return absl::NotFoundError(
        absl::StrCat(client_->words(), ": there is no namespace '", place_.name_space, "'"));
  }
  // This also happens if this very write was done and its answer was lost; the next try finds that
  // out.
  if (status != 200 && status != 201) return Holds("another service");
  term_ = absl::StrCat(holder_, "/", lease_.transitions);
  MutexLock lock(&mu_);
  until_ = sent + whole_ - whole_ / kMarginShare;
  return absl::OkStatus();
}

// Replaces the Lease on the server by `lease`; `status` is the server's answer. Updates lease_ if
// the write succeeds.
absl::Status HeldLease::Write(const LeaseObject& lease, Instant deadline, int* status) {
  const bool is_new = lease.metadata.empty();
  HLAUNCH_ASSIGN_OR_RETURN(
      const auto answer,
      client_->Call({is_new ? "POST" : "PUT", is_new ? LeasesPath(place_) : LeasePath(place_), "",
                     LeaseBody(place_, lease)},
                    deadline));
  *status = answer.status;
  if (answer.status == 200 || answer.status == 201) {
    HLAUNCH_ASSIGN_OR_RETURN(lease_, ReadLease(answer.body));
  }
  return absl::OkStatus();
}

absl::Status HeldLease::Confirm() {
  MutexLock turn(&turn_);
  for (int rereads = 0; rereads < kMostRereads; ++rereads) {
    const Instant until = HeldUntil();
    if (until == Instant()) return Lose("the lease has run out");
    const Instant sent = Now();
    const Instant deadline = std::min(until, sent + ApiClient::kPatience);
    LeaseObject next = lease_;
    next.renewed = MicroTime(WallMillis());
    int status = 0;
    HLAUNCH_RETURN_IF_ERROR(Write(next, deadline, &status));
    if (status == 200 || status == 201) {
      MutexLock lock(&mu_);
      // A late answer must not revive a lease that was reported as lost.
      if (HeldUntilLocked() == Instant()) return absl::AbortedError("the lease has run out");
      until_ = sent + whole_ - whole_ / kMarginShare;
      return absl::OkStatus();
    }
    HLAUNCH_RETURN_IF_ERROR(Reread(deadline));
  }
  return absl::UnavailableError(absl::StrCat(client_->words(), ": the lease changes all the time"));
}

// Reads the Lease again, which differs from lease_: an unanswered write was done, or a person has
// changed it.
absl::Status HeldLease::Reread(Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const auto read,
                           client_->Call({"GET", LeasePath(place_), "", ""}, deadline));
  if (read.status == 404) return Lose("the lease was deleted");
  HLAUNCH_ASSIGN_OR_RETURN(LeaseObject there, ReadLease(read.body));
  if (there.holder != holder_ || there.transitions != lease_.transitions) {
    return Lose(there.holder.empty() ? "the lease was taken away"
                                     : absl::StrCat(Holds(there.holder).message(), " leads"));
  }
  lease_ = std::move(there);
  return absl::OkStatus();
}

void HeldLease::KeepUp() {
  Instant next = Now() + whole_ / 3;
  while (true) {
    {
      MutexLock lock(&mu_);
      while (!stop_ && Now() < next) stopped_.WaitUntil(&mu_, next);
      if (stop_) return;
    }
    const absl::Status renewed = Confirm();
    if (absl::IsAborted(renewed)) return;
    next = Now() + (renewed.ok() ? whole_ / 3 : kAgain);
    MutexLock lock(&mu_);
    trouble_ = std::string(absl::StripPrefix(renewed.message(), client_->words() + ": "));
  }
}

void HeldLease::Release() {
  MutexLock turn(&turn_);
  if (lease_.version.empty() || HeldUntil() == Instant()) return;
  LeaseObject nobody = lease_;
  nobody.holder.clear();
  int status = 0;
  Write(nobody, Now() + kLastWord, &status).IgnoreError();
}

Instant HeldLease::HeldUntilLocked() const {
  if (Now() >= until_) {
    LoseLocked(absl::StrCat(
        "the lease was not renewed in time: ",
        trouble_.empty() ? "there was no answer, or this process stood still" : trouble_));
  }
  return lost_ ? Instant() : until_;
}

Instant HeldLease::HeldUntil() const {
  MutexLock lock(&mu_);
  return HeldUntilLocked();
}

absl::Status HeldLease::Lose(absl::string_view why) {
  MutexLock lock(&mu_);
  LoseLocked(why);
  return absl::AbortedError(absl::StrCat(client_->words(), ": ", why));
}

// Logs the loss once.
void HeldLease::LoseLocked(absl::string_view why) const {
  if (!std::exchange(lost_, true)) LogWarning(absl::StrCat(client_->words(), ": ", why));
}

}  // namespace hlaunch
