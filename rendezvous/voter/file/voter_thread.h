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
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/voter/voter.h"

namespace hlaunch {

// Runs a voter: gives it the events and the time, in a thread of its own, "hl-voter".
//
// All callbacks come from that thread, with no lock held, in the order of the events. They may call
// Give and must not call Keep. None comes after destruction. Thread-safe.
class VoterThread {
 public:
  struct Options {
    VoterMember self;
    VoterRule rule;
    const Clock* clock = nullptr;  // Must outlive this; must run on while the host is suspended.
    std::function<uint64_t()> random;
    std::function<void(const VoterMessage& message)> send;  // May lose messages. Must not block.
    // This process leads from now on, with the record of `entry`.
    std::function<void(Term term, const VoterEntry& entry)> leads;
    std::function<void(const std::string& why)> lost;
    std::function<void(const std::string& line)> news;
    // As VoterStep::answered, in `term`. May be empty.
    std::function<void(Incarnation from, Term term, uint64_t beat)> answered = nullptr;
    // Another process than before leads, or the same one in another term; the first one is not
    // told. May be this process. May be empty.
    std::function<void(Incarnation leader)> led_by = nullptr;
  };

  // Errors: ResourceExhausted - out of threads.
  static absl::StatusOr<std::unique_ptr<VoterThread>> Start(Options options);
  ~VoterThread();

  void Give(VoterEvent event);
  // Ends every wait in Keep. Events given from now on have no effect.
  void Stop();
  // The same; then waits until its thread has ended, so that no callback comes any more. Not to be
  // called from a callback, nor by two threads at once.
  void End();

  // Proposes `record` in `term` to replace the record that was kept last, of version `expected`,
  // and waits until it is decided. Returns its version. Only one call at a time. A call that failed
  // with Unavailable may still have taken effect, and may be repeated with the same `expected`.
  //
  // Errors:
  //   Aborted - this process does not lead in that term any more, or another record was kept.
  //   Unavailable - no majority has the record before `deadline`, by the monotonic clock; the
  //       message says which voters do not answer.
  absl::StatusOr<uint64_t> Keep(Term term, std::string record, uint64_t expected, Instant deadline);

  // Returns until when this process leads, by the monotonic clock as of this call; min() if it does
  // not lead.
  Instant LeadsUntil() const;
  // Returns, for people, which voters it waits for; empty if it does not wait.
  std::string Waits() const;

  // The group as this process knows it.
  struct Group {
    Incarnation leader = 0;  // 0: none.
    VoterMembers members;
  };
  Group group() const;

 private:
  // What Keep waits for.
  struct Proposal {
    std::optional<uint64_t> version;  // Its version, once it is proposed.
    std::string denied;
  };

  explicit VoterThread(Options options);
  void Run();
  std::optional<VoterEvent> NextEvent(Instant due);
  void Take(const VoterEvent& event, const VoterStep& step);
  void Tell(const VoterEvent& event, const VoterStep& step);
  void TellLeader(const VoterEvent& event, const VoterStep& step);
  absl::Status LostLocked(Term term) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Voter voter_;  // For its thread only, like the next.
  std::optional<std::pair<Term, Incarnation>> told_leader_;

  mutable Mutex mu_;
  CondVar changed_;  // Signals events, what Keep waits for, and the end.
  std::deque<VoterEvent> events_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // The state after the last step.
  std::optional<Term> leads_ ABSL_GUARDED_BY(mu_);
  Instant leads_until_ ABSL_GUARDED_BY(mu_) = Instant::min();
  std::string waits_ ABSL_GUARDED_BY(mu_);
  Group group_ ABSL_GUARDED_BY(mu_);
  std::string why_lost_ ABSL_GUARDED_BY(mu_);
  uint64_t decided_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t kept_ ABSL_GUARDED_BY(mu_) = 0;  // The version at the start, or returned last.
  Proposal proposal_ ABSL_GUARDED_BY(mu_);
  // Proposals that the voter has not taken yet. Only the last is that of the current Keep; those
  // before it are of calls that gave up.
  int untaken_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread thread_;
};

}  // namespace hlaunch
