// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/witness/witness.h"

namespace hlaunch {

// Runs a witness: gives it what happens and the time, in a thread of its own, "hl-witness".
//
// Thread-safe. All callbacks come from that thread, with no lock held, in the order of what they
// tell; they may call Give, and must not call Keep. None comes after destruction.
class WitnessThread {
 public:
  struct Options {
    WitnessMember self;
    WitnessRule rule;
    const Clock* clock = nullptr;  // Must outlive it, and count the time of a suspended host.
    std::function<uint64_t()> random;
    std::function<void(const WitnessMessage& message)> send;  // May lose it. Must not block.
    // It leads from now on, with that record.
    std::function<void(Term term, const WitnessEntry& entry)> leads;
    std::function<void(const std::string& why)> lost;
    std::function<void(const std::string& line)> news;
  };

  // Errors: ResourceExhausted - out of threads.
  static absl::StatusOr<std::unique_ptr<WitnessThread>> Start(Options options);
  ~WitnessThread();

  void Give(WitnessEvent event);
  // Whoever waits in Keep waits no longer, and nothing that is given counts any more.
  void Stop();

  // Proposes `record` in `term` in the place of the one that was kept last, of version `expected`,
  // and waits until it is decided. Returns its version. One call at a time. One that failed with
  // Unavailable has happened or not, and may be tried again with the same `expected`.
  //
  // Errors:
  //   Aborted - it does not lead in that term any more, or another record was kept.
  //   Unavailable - no majority has it before `deadline`, by the monotonic clock; says who does
  //       not answer.
  absl::StatusOr<uint64_t> Keep(Term term, std::string record, uint64_t expected, Instant deadline);

  // By the monotonic clock, as it was at this call; min(): it does not lead.
  Instant LeadsUntil() const;
  // For whom it waits; empty: for nobody.
  std::string Waits() const;

  // The group as this one knows it.
  struct Group {
    Incarnation leader = 0;  // 0: nobody.
    WitnessMembers members;
  };
  Group group() const;

 private:
  // What Keep waits for.
  struct Proposal {
    std::optional<uint64_t> version;  // That it has, once it is proposed.
    std::string denied;
  };

  explicit WitnessThread(Options options);
  void Run();
  std::optional<WitnessEvent> NextEvent(Instant due);
  void Take(const WitnessEvent& event, const WitnessStep& step);
  void Tell(const WitnessStep& step);
  absl::Status LostLocked(Term term) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Witness witness_;  // Its thread's.

  mutable Mutex mu_;
  CondVar changed_;  // Events, what Keep waits for, the end.
  std::deque<WitnessEvent> events_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // What is so after the last step.
  std::optional<Term> leads_ ABSL_GUARDED_BY(mu_);
  Instant leads_until_ ABSL_GUARDED_BY(mu_) = Instant::min();
  std::string waits_ ABSL_GUARDED_BY(mu_);
  Group group_ ABSL_GUARDED_BY(mu_);
  std::string why_lost_ ABSL_GUARDED_BY(mu_);
  uint64_t decided_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t kept_ ABSL_GUARDED_BY(mu_) = 0;  // The version that was begun with, or returned last.
  Proposal proposal_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace hlaunch
