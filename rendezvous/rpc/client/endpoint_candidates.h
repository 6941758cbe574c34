// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// Where a rendezvous may be. A value.
struct EndpointCandidate {
  std::string host;  // A name or a literal.
  uint16_t port = 0;
  std::string name;  // The name in its certificate.
};

// The candidates in turn: the endpoint, its others, the voters; and the addresses of the one that
// is tried now. A candidate whose host is gone must not keep the client from the others.
//
// Belongs to one thread.
class EndpointCandidates {
 public:
  // `lookup`: that of the endpoint's name, if it has been started; else null.
  EndpointCandidates(RendezvousEndpoint endpoint, std::shared_ptr<Lookup> lookup);

  const EndpointCandidate& current() const { return current_; }
  size_t count() const { return 1 + endpoint_.others.size() + voters_.size(); }
  bool several() const { return count() > 1; }
  // False at a voter: its address says nothing about where the endpoint's name leads.
  bool at_endpoint() const { return index_ <= endpoint_.others.size(); }
  const VoterMembers& voters() const { return voters_; }

  // The current candidate has been tried before, in another way.
  void BeginTurn() { begun_turn_ = true; }
  // The next turn begins with the first of `voters`.
  void Learn(VoterMembers voters);
  // The same, and the current turn is over.
  void TurnTo(VoterMembers voters);
  // Skips the next candidate if it is the one that was just silent: the others come first, even if
  // it led.
  void PassOver();
  // Whether the next candidate is the current one.
  bool next_is_current() const;

  // The next address of this turn; unset if all have been tried.
  std::optional<std::string> NextAddress();
  // Goes on with the next candidate, if there are several, and asks the resolver for its name.
  // The turn that has not begun yet begins with the first one.
  void StartLookup();
  // What the resolver has said; unset while it has not.
  std::optional<Lookup::Result> lookup_result() const;
  // That lookup is over. If it found nothing, the addresses of the last one are tried again.
  void EndLookup(const Lookup::Result& found);
  // The resolver is late: begins a turn with the addresses of the last lookup, if there are any.
  // The lookup goes on.
  void TryKnownAddresses();
  // Adds `detour` after the candidate's own addresses, since every node ends where the endpoint
  // leads.
  void AddAddress(const std::string& detour);

  size_t addresses() const { return addresses_.size(); }
  // Whether some name had an address.
  bool resolved() const { return resolved_; }
  // All that the user has named, as in "a:29400, b:29400".
  std::string Endpoints() const;

 private:
  EndpointCandidate At(size_t index) const;

  const RendezvousEndpoint endpoint_;
  VoterMembers voters_;
  size_t index_ = 0;  // Into the endpoint, its others and the voters.
  EndpointCandidate current_;
  bool begun_turn_ = false;  // The first candidate has been tried.
  bool resolved_ = false;
  std::vector<std::string> addresses_;
  size_t next_address_ = 0;
  std::shared_ptr<Lookup> lookup_;  // Under way; shared with its thread.
};

}  // namespace hlaunch
