// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/now.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/values/job_policy.h"
#include "rendezvous/rpc/client/attach_call.h"
#include "rendezvous/rpc/client/call_events.h"
#include "rendezvous/rpc/client/client_lease.h"
#include "rendezvous/rpc/client/client_options.h"
#include "rendezvous/rpc/client/contact_reports.h"
#include "rendezvous/rpc/client/endpoint_candidates.h"
#include "rendezvous/rpc/client/outbox.h"

namespace hlaunch {

// Random times, so that clients that began together do not go on together. Belongs to one thread.
class RandomTimes {
 public:
  Duration Between(Duration low, Duration high) {
    return Duration(
        std::uniform_int_distribution<Duration::rep>(low.count(), high.count())(random_));
  }

 private:
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(NewIncarnation())};
};

// A client's conversation with the rendezvous, from its first attempt on, on a thread of its own.
//
// Put, AllowanceNow and LedBy are thread-safe: the outbox, the lease and the events are
// shared with the callers' threads; what is below `led_by_` belongs to the client's thread.
class Conversation {
 public:
  using Listener = RendezvousClient::Listener;

  // Starts the thread, or calls OnEnd. `listener` and `contacted` must outlive the object;
  // `contacted` becomes true once a rendezvous has let this node in.
  Conversation(ClientOptions options, const NodeInfo& info, const NodeUpdate& update,
               Listener* listener, std::atomic<bool>* contacted);
  // Delivers a last message, as the client's destructor says, and joins the thread.
  ~Conversation();

  // Sends an update, an answer or a word.
  template <typename Message>
  void Put(Message&& message) {
    outbox_.Put(std::forward<Message>(message));
    events_.Wake();
  }

  // As RendezvousClient::AllowanceNow.
  Allowance AllowanceNow(Instant now);

  // As GrpcRendezvousClient::LedBy.
  void LedBy(const VoterMembers& places);

 private:
  using Event = CallEvents::Event;
  static constexpr Duration kFirstBackoff = std::chrono::milliseconds(50);

  static Instant Now() { return MonotonicClock().Now(); }
  void Run();
  void PauseBeforeRetry();

  // Returns whether there is no reason to go on: the end was reported, the last message was
  // answered, time is up, or the owner leaves and has no last message to send.
  bool IsOver();
  Instant GiveUpAt();
  void NoteTakenElsewhere();

  // Goes on with the candidate that leads, if this process has learned that. Returns true if it
  // has.
  bool TurnToLeader();
  Duration JoinLimit() const;
  void EndInSilence();
  void End(const absl::Status& status);

  // Returns the next address to try, in turn, or nothing if there is none yet. Looks the name up
  // again after each turn, since its host may have moved.
  std::optional<std::string> NextAddress();
  void AddDetour();

  // Grows from 50 ms to 1 s divided by the number of candidates; each pause is between half of it
  // and all.
  Duration NextBackoff();

  // Returns the time until the next sign of life is due: at most half a lease.
  Duration NextSign();

  // Talks in one call until it is over.
  void Converse(const std::string& address);

  // Returns how long a call may be silent. Of several candidates some may be cut off, most of all
  // the one that led; all of them are to be tried within the loss limit.
  Duration Patience(const AttachCall& call) const;
  Instant SilentAt(const AttachCall& call) const;
  Instant WakeAt(const AttachCall& call);
  void Hear(AttachCall* call);
  void TakeIn(AttachCall* call);

  // From now on the rendezvous may be at any of the voters. Returns false if this node does not
  // understand who they are.
  bool LearnVoters(const v1::AttachResponse& response);
  void EndInConfusion(const absl::Status& status);

  // Returns whether the end of the call means that the owner's last message was delivered.
  bool IsDelivered(const AttachCall& call, const absl::Status& status) const;

  // Decides what the end of a call means.
  void Judge(const AttachCall& call);
  void Lost(const std::string& trouble);

  // Nodes rarely start in the same second, so an early failure is not reported.
  void ReportTrouble();
  void Report(bool connected, const std::string& detail);
  std::pair<Event, bool> AwaitEvent(Instant until);
  std::string Endpoint() const;

  CallEvents events_;
  Outbox outbox_;
  const Instant begun_;
  ClientLease lease_;
  Mutex mu_;
  VoterMembers led_by_ ABSL_GUARDED_BY(mu_);  // The argument of LedBy, until it is used.

  const ClientOptions options_;
  const NodeInfo info_;
  Listener* const listener_;
  std::optional<JobPolicy> policy_;  // The job's policy, once the rendezvous has sent it.
  Instant call_forgiven_until_;      // A call's silence until then is not held against it.
  std::atomic<bool>& contacted_;
  bool answered_ = false;  // A rendezvous said something, at least "not yet".
  bool over_ = false;
  std::string trouble_;  // The latest trouble; empty while connected.
  std::string another_;  // What a rendezvous said that has begun anew; empty while connected.
  EndpointCandidates candidates_;
  ContactReports reports_;
  Duration backoff_ = kFirstBackoff;
  RandomTimes random_;

  std::thread thread_;
};

}  // namespace hlaunch
