// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/file/voter_thread.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr Duration kLongest = std::chrono::hours(1);  // The longest wait without an event.

}  // namespace

VoterThread::VoterThread(Options options)
    : options_(std::move(options)), voter_(options_.self, options_.rule) {}

absl::StatusOr<std::unique_ptr<VoterThread>> VoterThread::Start(Options options) {
  std::unique_ptr<VoterThread> voter(new VoterThread(std::move(options)));
  try {
    voter->thread_ = std::thread([raw = voter.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for the voter: ", error.code().message()));
  }
  ::pthread_setname_np(voter->thread_.native_handle(), "hl-voter");
  return voter;
}

VoterThread::~VoterThread() { End(); }

void VoterThread::End() {
  if (!thread_.joinable()) return;
  Stop();
  thread_.join();
}

void VoterThread::Stop() {
  MutexLock lock(&mu_);
  stop_ = true;
  leads_.reset();
  leads_until_ = Instant::min();
  why_lost_ = absl::StrCat(options_.self.name, " is a voter no longer");
  changed_.SignalAll();
}

void VoterThread::Give(VoterEvent event) {
  MutexLock lock(&mu_);
  events_.push_back(std::move(event));
  changed_.SignalAll();
}

void VoterThread::Run() {
  Instant due = Instant::max();
  while (const std::optional<VoterEvent> event = NextEvent(due)) {
    const VoterStep step = voter_.Step(*event, options_.clock->Now(), options_.random());
    due = step.next;
    Take(*event, step);
    Tell(*event, step);
  }
}

// Returns no value at the end.
std::optional<VoterEvent> VoterThread::NextEvent(Instant due) {
  MutexLock lock(&mu_);
  while (!stop_) {
    if (!events_.empty()) {
      VoterEvent event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    const Instant now = options_.clock->Now();
    if (due <= now) return VoterTimePassed{};
    const Duration pause = due == Instant::max() ? kLongest : std::min(due - now, kLongest);
    changed_.WaitUntil(&mu_, MonotonicClock().Now() + pause);
  }
  return std::nullopt;
}

void VoterThread::Take(const VoterEvent& event, const VoterStep& step) {
  MutexLock lock(&mu_);
  if (stop_) return;
  if (step.lost) {
    leads_.reset();
    why_lost_ = *step.lost;
  }
  if (step.leads) {
    leads_ = step.leads;
    kept_ = decided_ = voter_.entry()->version;
  }
  if (std::holds_alternative<VoterProposed>(event) && --untaken_ == 0) {
    proposal_.denied = step.denied;
    if (step.denied.empty()) proposal_.version = voter_.entry()->version;
  }
  if (step.decided) decided_ = *step.decided;
  leads_until_ = voter_.LeadsUntil();
  waits_ = voter_.Waits(options_.clock->Now());
  group_.leader = voter_.leader();
  if (voter_.entry() != nullptr) group_.members = voter_.entry()->members;
  changed_.SignalAll();
}

void VoterThread::Tell(const VoterEvent& event, const VoterStep& step) {
  for (const std::string& line : step.news) options_.news(line);
  if (step.lost) options_.lost(*step.lost);
  if (step.leads) options_.leads(*step.leads, *voter_.entry());
  for (const auto& [from, beat] : step.answered) {
    if (options_.answered) options_.answered(from, voter_.term(), beat);
  }
  TellLeader(event, step);
  for (const VoterMessage& message : step.send) options_.send(message);
}

void VoterThread::TellLeader(const VoterEvent& event, const VoterStep& step) {
  Incarnation leader = step.leads ? options_.self.incarnation : 0;
  const auto* const heard = std::get_if<VoterHeard>(&event);
  const bool append = heard != nullptr && heard->message.kind == VoterMessage::Kind::kAppend;
  if (append && heard->message.term == voter_.term() && heard->message.from == voter_.leader()) {
    leader = heard->message.from;
  }
  const std::pair<Term, Incarnation> led(voter_.term(), leader);
  if (leader == 0 || told_leader_ == led) return;
  const bool first = !std::exchange(told_leader_, led).has_value();
  if (!first && options_.led_by) options_.led_by(leader);
}

absl::Status VoterThread::LostLocked(Term term) const {
  if (leads_ == term) return absl::OkStatus();
  return absl::AbortedError(why_lost_.empty()
                                ? absl::StrCat(options_.self.name, " does not lead in term ", term)
                                : why_lost_);
}

absl::StatusOr<uint64_t> VoterThread::Keep(Term term, std::string record, uint64_t expected,
                                           Instant deadline) {
  MutexLock lock(&mu_);
  if (absl::Status lost = LostLocked(term); !lost.ok()) return lost;
  if (expected != kept_) {
    return absl::AbortedError(
        absl::StrCat("the voters keep version ", kept_, " of the record, not version ", expected));
  }
  proposal_ = {};
  ++untaken_;
  events_.push_back(VoterProposed{term, std::move(record)});
  changed_.SignalAll();
  for (bool in_time = true;;) {
    if (absl::Status lost = LostLocked(term); !lost.ok()) return lost;
    if (!proposal_.denied.empty()) return absl::AbortedError(proposal_.denied);
    if (proposal_.version && decided_ >= *proposal_.version) return kept_ = *proposal_.version;
    if (!in_time) return absl::UnavailableError(waits_.empty() ? "no voter answers" : waits_);
    in_time = changed_.WaitUntil(&mu_, deadline);
  }
}

Instant VoterThread::LeadsUntil() const {
  MutexLock lock(&mu_);
  if (leads_until_ == Instant::min()) return leads_until_;
  // In a group of two the lead may last for ever. But the caller may stand still meanwhile, so it
  // gets at most one lease.
  const Duration left = leads_until_ == Instant::max()
                            ? options_.rule.lease
                            : std::min(leads_until_ - options_.clock->Now(), options_.rule.lease);
  return MonotonicClock().Now() + left;
}

VoterThread::Group VoterThread::group() const {
  MutexLock lock(&mu_);
  return group_;
}

std::string VoterThread::Waits() const {
  MutexLock lock(&mu_);
  return waits_;
}

}  // namespace hlaunch
