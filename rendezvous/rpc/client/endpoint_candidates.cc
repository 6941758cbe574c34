// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/endpoint_candidates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {

EndpointCandidates::EndpointCandidates(RendezvousEndpoint endpoint, std::shared_ptr<Lookup> lookup)
    : endpoint_(std::move(endpoint)), current_(At(0)), lookup_(std::move(lookup)) {}

EndpointCandidate EndpointCandidates::At(size_t index) const {
  if (index == 0) return {endpoint_.host, endpoint_.port, endpoint_.host};
  if (const size_t other = index - 1; other < endpoint_.others.size()) {
    const auto& [host, port] = endpoint_.others[other];
    return {host, port, host};
  }
  const VoterMember& voter = voters_[index - 1 - endpoint_.others.size()];
  const VoterAddress address = SplitAddress(voter.address);
  return {address.literal, address.port, voter.name};
}

void EndpointCandidates::Learn(VoterMembers voters) {
  voters_ = std::move(voters);
  index_ = endpoint_.others.size();
}

void EndpointCandidates::TurnTo(VoterMembers voters) {
  Learn(std::move(voters));
  next_address_ = addresses_.size();
}

void EndpointCandidates::PassOver() {
  if (index_ + 1 < count() && next_is_current()) ++index_;
}

bool EndpointCandidates::next_is_current() const {
  const EndpointCandidate next = At(index_ + 1);
  return next.host == current_.host && next.port == current_.port;
}

std::optional<std::string> EndpointCandidates::NextAddress() {
  if (next_address_ >= addresses_.size()) return std::nullopt;
  return addresses_[next_address_++];
}

void EndpointCandidates::StartLookup() {
  if (std::exchange(begun_turn_, true) && several()) {
    index_ = (index_ + 1) % count();
    current_ = At(index_);
    addresses_.clear();
    lookup_ = nullptr;
  }
  if (lookup_ == nullptr) lookup_ = Lookup::Start(current_.host);
}

std::optional<Lookup::Result> EndpointCandidates::lookup_result() const {
  return lookup_->result();
}

void EndpointCandidates::EndLookup(const Lookup::Result& found) {
  lookup_ = nullptr;
  next_address_ = 0;
  resolved_ = resolved_ || found.ok();
  if (found.ok()) addresses_ = *found;
}

void EndpointCandidates::TryKnownAddresses() { next_address_ = 0; }

void EndpointCandidates::AddAddress(const std::string& detour) {
  if (std::find(addresses_.begin(), addresses_.end(), detour) == addresses_.end()) {
    addresses_.push_back(detour);
  }
}

std::string EndpointCandidates::Endpoints() const {
  std::string all = HostPort(endpoint_.host, endpoint_.port);
  for (const auto& [host, port] : endpoint_.others) {
    absl::StrAppend(&all, ", ", HostPort(host, port));
  }
  return all;
}

}  // namespace hlaunch
