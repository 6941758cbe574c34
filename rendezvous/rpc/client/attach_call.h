// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/rpc/client/call_events.h"
#include "rendezvous/rpc/client/endpoint_candidates.h"
#include "rendezvous/rpc/client/outbox.h"
#include "rendezvous/rpc/grpc_transport.h"

namespace hlaunch {

// Returns whether this answer of the rendezvous is final; any other error may pass. Pure.
bool IsRefusal(absl::StatusCode code);

// One call of Rendezvous.Attach: a stream in both directions, and what is under way on it.
//
// Belongs to the client's thread. Must not be destroyed while it is under way.
class AttachCall {
 public:
  // Starts the call to `candidate` at `address`, one of its addresses. `events` must outlive it.
  AttachCall(const std::string& address, const EndpointCandidate& candidate, const Trust& trust,
             CallEvents* events, Instant now);

  // True until the end of the call is known and all its events have come.
  bool under_way() const { return in_flight_ > 0; }

  // Takes in one of its events. Returns whether it has brought a response.
  bool TakeIn(CallEvents::Event event, bool ok, Instant now);
  // Then goes on reading if that event allows it, and if `more` is wanted; else ends the call.
  void GoOn(CallEvents::Event event, bool ok, bool more);

  const v1::AttachResponse& response() const { return response_; }
  // Whether who answers is a rendezvous, and not a voter that stands by.
  bool welcome() const { return welcome_; }
  // Counts our messages that were answered so far. Returns when the last of them was sent.
  std::optional<Instant> CountAnswered();

  bool can_write() const { return ready_ && !half_closed_ && !ending_; }
  bool ready() const { return ready_; }    // Started, and no write is in flight.
  bool joined() const { return joined_; }  // The join was written.
  // Writes `message`, at first with the join of `info`, if it is due: an update that was not
  // written yet, an answer, a word; else a sign of life, or the end of the stream.
  void Write(const NodeInfo& info, const Outbox::Message& message, Instant now, Duration next_sign);
  // The next sign of life is due then.
  Instant speaks_at() const { return speaks_at_; }
  void SpeakAt(Instant at) { speaks_at_ = at; }

  // Ends the call, as another candidate leads (`left`), or because it was silent for too long.
  void Cancel(bool left);
  bool cancelled() const { return cancelled_; }
  bool left() const { return left_; }

  uint64_t sent() const { return sent_; }          // The version of the last update written.
  uint64_t answered() const { return answered_; }  // How many of our messages were answered.
  bool all_answered() const { return unanswered_.empty(); }
  bool half_closed() const { return half_closed_; }
  Instant heard() const { return heard_; }  // When the last response came; at first, its start.

  // How the call has ended.
  absl::Status status() const { return line_.StatusOfCall(status_); }
  bool ended_by_answer() const;
  std::string trouble() const { return line_.TroubleOf(status_); }

 private:
  const Line line_;
  const std::string own_address_;  // This host's address on the route.
  std::unique_ptr<v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::AttachRequest, v1::AttachResponse>> rpc_;
  v1::AttachRequest request_;
  v1::AttachResponse response_;
  grpc::Status status_;
  int in_flight_ = 0;  // Operations whose event has not come.
  bool ready_ = false;
  bool joined_ = false;
  bool half_closed_ = false;
  bool ending_ = false;
  bool cancelled_ = false;
  bool left_ = false;
  bool welcome_ = false;
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
  uint64_t read_ = 0;  // How many responses have come.
  Instant heard_;
  Instant speaks_at_;
  std::deque<Instant> unanswered_;  // When our unanswered messages were sent.
};

}  // namespace hlaunch
