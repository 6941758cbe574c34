// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proto/base/clock.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/round/values/job_policy.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// What a GrpcRendezvousClient needs. A value.
struct ClientOptions {
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

}  // namespace hlaunch
