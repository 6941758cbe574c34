// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "rendezvous/round/round.h"

// What happens in a simulation, in the order of time.

namespace hlaunch {

// A message between an agent and the rendezvous. A value.
struct SimulatedMessage {
  enum class Kind { kJoin, kUpdate, kBeat, kAnswer, kDirective, kProbe, kEnd };
  Kind kind = Kind::kBeat;
  uint32_t stream = 0;  // Of this agent.
  uint64_t number = 0;  // Upwards: of this stream, from 1. kAnswer: the last one heard.
  NodeUpdate update;    // kJoin, kUpdate.
  absl::Status end;     // kEnd.
  Directive directive;  // kDirective.
};

enum class EventKind {
  // At the rendezvous, void once it was restarted.
  kArrives,    // A message.
  kHandsOver,  // What is to be told to a node.
  kNotices,    // That a stream is gone.
  kReported,   // A death.
  kTick,
  kResumes,
  kOpens,      // Anew, after a restart.
  kLooks,      // Whether it may lead.
  kRenews,     // Its lease.
  kWritten,    // At the place, by whoever leads or led.
  kWriteTold,  // What came of that.
  kKeepsAgain,
  // At an agent.
  kReaches,   // A message.
  kBreaks,    // Its stream.
  kClient,    // The client's timer.
  kConnects,  // The client, again.
  kSays,      // The client takes the latest update.
  kObeys,     // The agent takes what the client posted.
  kChecked,   // A proposed round.
  kExits,     // A worker, or all of them.
  kGone,      // The workers, after a stop.
  kWakes,
  kShowsLife,  // The agent's loop turns, for its keeper.
  // Around them.
  kSwept,    // A killed agent's workers, by its keeper.
  kFence,    // A keeper looks whether its agent stands still.
  kArrival,  // A node's agent starts.
  kFault,
  kServiceFault,
};

struct Event {
  Instant at;
  uint64_t order = 0;  // Among events of one instant.
  EventKind kind = EventKind::kFault;
  int agent = -1;
  uint32_t token = 0;  // A timer that was set anew ignores the older ones; a stream; a life.
  std::shared_ptr<SimulatedMessage> message;
  int service = 0;  // Of those that share a place.
};

// O(log n).
class EventQueue {
 public:
  void Push(Event event) {
    event.order = ++order_;
    queue_.push(std::move(event));
  }
  Event Pop() {
    Event event = std::move(const_cast<Event&>(queue_.top()));  // It goes the next moment.
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
