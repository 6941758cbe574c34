// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// The address of a rendezvous, and what the node and the rendezvous prove to each other.
struct RendezvousEndpoint {
  std::string host;  // A name or a literal without brackets.
  uint16_t port = 0;
  Trust trust;
  // Hosts and ports of further services. One of all the services leads; the client tries them in
  // turn.
  std::vector<std::pair<std::string, uint16_t>> others = {};
};

// A node's end of the rendezvous over gRPC.
//
// Before the first answer the client retries until the join time-out, since the rendezvous' host
// and its name may appear later than this node. After a second it says what it waits for. After the
// first answer it retries until the loss limit, counted from when it sent the last message that was
// answered. A pause of this process is forgiven (ForgivenUntil): the client then waits for
// TimeToAsk. While connected it gives a sign of life at least every half lease, and treats a
// connection that is silent for a whole lease as broken.
//
// Thread-safe; calls the listener from its own thread, "rdzv-client". The destructor first delivers
// a last kLeft or kFinished, for at most 2 s.
class GrpcRendezvousClient final : public RendezvousClient {
 public:
  struct Options {
    RendezvousEndpoint endpoint;
    Duration join_timeout = std::chrono::seconds(600);
    // The limit for any answer of a rendezvous, even "not yet". Unset: join_timeout.
    std::optional<Duration> answer_timeout = std::nullopt;
    // The lookup of the endpoint's name, if the caller has already started it; else null.
    std::shared_ptr<Lookup> lookup = nullptr;
    // Called with each answer of the resolver for the endpoint or one of its others, before the
    // client uses it. Not called for InvalidArgument, which ends the conversation. May be empty.
    std::function<void(const Lookup::Result& found)> on_lookup = nullptr;
    // Returns another address that leads to the rendezvous, or nothing while there is none. The
    // client tries it after the endpoint's own. Called in every turn, from the client's thread like
    // on_lookup. May be empty.
    std::function<std::optional<std::string>()> detour = nullptr;
    // Continues the conversation that this node has had in another way so far. The rendezvous is
    // now at one of `voters`.
    struct TakenUp {
      Lease lease;
      Instant heard;  // When the last message of this node that was accepted was sent.
      VoterMembers voters;
      Instant forgiven_until = {};  // As in GiveUpAt.
    };
    std::optional<TakenUp> taken_up = std::nullopt;
    // Called from the client's thread each time the rendezvous sends the list of voters, which
    // keep the job's record, with what holds for the job; not before that is known. The rendezvous
    // may be at any of them, so the client tries them before the endpoint. May be empty.
    std::function<void(const JobPolicy& policy, const VoterMembers& voters)> on_voters = nullptr;
    // Returns when this process gave the last sign of life that the rendezvous took in another way
    // than from this client; min() if it gave none. Called from any thread. May be empty.
    std::function<Instant()> taken_elsewhere = nullptr;
    // Returns how long this process may stand still before its keeper ends it, if that is less than
    // what the rendezvous allows; else max(). Called from any thread. May be empty.
    std::function<Duration()> patience = nullptr;
  };

  explicit GrpcRendezvousClient(Options options);
  ~GrpcRendezvousClient() override;

  // `listener` must outlive the client. If info.address is empty, the client fills in this host's
  // address on its route to the rendezvous. If its thread cannot be started, this calls OnEnd with
  // ResourceExhausted before it returns.
  void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) override;
  void Send(const NodeUpdate& update) override;
  void Answer(NodeAnswer answer) override;
  void Tell(RoundWord word) override;
  Allowance AllowanceNow(Instant now) const override;

  // This process has learned in another way that the rendezvous is at the first of `places`; the
  // others may lead later. The client goes there at once. Has no effect before Join.
  void LedBy(const VoterMembers& places);

  // True once a rendezvous has let this node in.
  bool contacted() const { return contacted_; }

 private:
  class Conversation;
  const Options options_;
  std::atomic<bool> contacted_ = false;
  std::unique_ptr<Conversation> conversation_;
  std::atomic<Conversation*> begun_ = nullptr;  // The same, for LedBy.
};

// Tells the rendezvous that this incarnation's agent is dead and that none of its workers lives.
//
// Errors:
//   InvalidArgument - the endpoint's name cannot be a valid name.
//   PermissionDenied - the rendezvous has another token.
//   Aborted - that incarnation is not a member any more.
//   Unavailable, DeadlineExceeded - the rendezvous was not reached before `deadline`.
absl::Status ReportNodeDeath(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                             absl::string_view node_id, Incarnation incarnation,
                             absl::string_view reason, Instant deadline);

}  // namespace hlaunch
