// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/voter/voter_message.h"

// The events of a simulation, and the queue that orders them by time.

namespace hlaunch {

// A message between an agent and the rendezvous. A value.
struct SimulatedMessage {
  enum class Kind { kJoin, kUpdate, kBeat, kAnswer, kDirective, kProbe, kEnd };
  Kind kind = Kind::kBeat;
  uint32_t stream = 0;  // Numbers the streams of this agent from 1.
  uint64_t number = 0;  // Upwards: counts within the stream, from 1. kAnswer: the last one heard.
  NodeUpdate update;    // kJoin, kUpdate.
  absl::Status end;     // kEnd.
  Directive directive;  // kDirective.
  Instant sent;         // Downwards: when it was sent.
  Instant made_after;   // Upwards: `sent` of the last message that the agent had read.
};

enum class EventKind {
  // At the rendezvous. A restart of the rendezvous makes most of these void.
  kArrives,    // A message arrives.
  kHandsOver,  // The rendezvous tells a node what is new for it.
  kNotices,    // It notices that a stream is gone.
  kReported,   // A keeper reports the death of its agent.
  kTick,
  kResumes,
  kOpens,       // The rendezvous opens again after a restart.
  kLooks,       // A service checks whether it may lead.
  kRenews,      // The leader renews its lease.
  kWritten,     // A write of a leader, current or former, reaches the place.
  kWriteTold,   // The service learns the result of its write.
  kKeepsAgain,  // It retries a write.
  // At a voter.
  kVoterHears,    // A message arrives.
  kVoterTicks,    // Time has passed for it.
  kLooksAtNodes,  // The leader looks which nodes may be voters.
  // At an agent.
  kReaches,          // A message arrives.
  kBreaks,           // Its stream breaks.
  kClient,           // The client's timer expires.
  kConnects,         // The client connects again.
  kSays,             // The client takes the latest update.
  kObeys,            // The agent takes what the client posted.
  kChecked,          // The check of a proposed round is done.
  kExits,            // A worker exits, or all of them do.
  kGone,             // The workers are gone after a stop.
  kWakes,            // A pause is over.
  kShowsLife,        // The agent's loop shows its keeper that it runs.
  kLooksForWorkers,  // The agent checks whether it still has workers.
  // Around the rendezvous and the agents.
  kSwept,    // The keeper of a killed agent has ended the workers.
  kFence,    // A keeper checks whether its agent stands still.
  kArrival,  // A node's agent starts.
  kFault,
  kServiceFault,
};

struct Event {
  Instant at;
  uint64_t order = 0;  // The order among events of one instant.
  EventKind kind = EventKind::kFault;
  int agent = -1;
  uint32_t token = 0;  // A stream, a life, or a timer's number: a timer ignores older ones.
  std::shared_ptr<SimulatedMessage> message;
  int service = 0;  // Index of the service that the event concerns.
  std::shared_ptr<const VoterMessage> letter = nullptr;  // kVoterHears.
};

// The events to come, earliest first. Push and Pop are O(log n).
class EventQueue {
 public:
  void Push(Event event) {
    event.order = ++order_;
    queue_.push(std::move(event));
  }
  Event Pop() {
    Event event = std::move(const_cast<Event&>(queue_.top()));  // The next line removes it.
    queue_.pop();
    return event;
  }
  bool empty() const { return queue_.empty(); }
  const Event& next() const { return queue_.top(); }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  uint64_t order_ = 0;
};

}  // namespace hlaunch
