// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// A node's end of the rendezvous: sends this node's latest state, hands on the latest
// directive, and keeps the connection by itself (reconnects with the same incarnation).
//
// Thread-safe. Destruction ends the conversation and joins its threads; no listener call is
// made after it.
class RendezvousClient {
 public:
  // Receives what the rendezvous sends. Called from a thread of the client, one call at a time,
  // never under a lock. A call must not block and must not destroy the client.
  class Listener {
   public:
    virtual ~Listener() = default;

    // The latest directive; the same one may come again after a reconnect.
    virtual void OnDirective(const Directive& directive) = 0;

    // A person asks what this node's ranks do. The node must answer once, with Answer.
    virtual void OnQuestion(const NodeQuestion& /*question*/) {}

    // Another node of the round has said `word`.
    virtual void OnWord(const RoundWord& /*word*/) {}

    // Contact with the rendezvous was lost or found again; `detail` says with whom and why.
    // Workers keep running.
    virtual void OnContact(bool connected, const std::string& detail) = 0;

    // The conversation is over without an outcome; nothing more will come.
    //
    //   InvalidArgument - the endpoint's name does not resolve.
    //   PermissionDenied - the token was refused.
    //   FailedPrecondition - this node does not fit the job; the message names the difference.
    //   AlreadyExists - a live node holds this place.
    //   Aborted - a newer incarnation of this node took its place, or the job went on without it.
    //   OutOfRange - the rendezvous does not know this node's round: it is another rendezvous. This
    //     node may join it afresh.
    //   DeadlineExceeded - nothing was heard for the loss limit.
    //   Unavailable - the rendezvous was never reached within the join time-out.
    //   ResourceExhausted - no thread could be started to speak with it.
    virtual void OnEnd(const absl::Status& status) = 0;
  };

  virtual ~RendezvousClient() = default;

  // Joins, sending `update` as this node's first state. Called once.
  virtual void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) = 0;

  // Replaces this node's state and sends it as soon as the connection allows.
  virtual void Send(const NodeUpdate& update) = 0;

  // Sends the answer to a question. It is lost if the connection breaks first.
  virtual void Answer(NodeAnswer answer) = 0;

  // Sends `word` to the other nodes of its round, as RoundWord says. It is lost if the connection
  // breaks first, if a newer one comes before it was sent, or if the rendezvous is older.
  virtual void Tell(RoundWord word) = 0;

  // Returns what this node may do at `now`, given what was heard so far. Never blocks.
  virtual Allowance AllowanceNow(Instant now) const = 0;
};

// Translates `status`, which a rendezvous answered, for a listener. The rendezvous refuses
// impossible messages with InvalidArgument; to a listener that would mean that the endpoint's name
// is wrong.
inline absl::Status AsRefusal(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::FailedPreconditionError(status.message());
}

}  // namespace hlaunch
