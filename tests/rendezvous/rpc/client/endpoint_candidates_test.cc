// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/endpoint_candidates.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

RendezvousEndpoint At(std::vector<std::pair<std::string, uint16_t>> others = {}) {
  return {"10.0.0.1", 29400, Trust(), std::move(others)};
}

VoterMembers Voters() {
  return {VoterMember{1, "node1", "10.0.0.2:40001"}, VoterMember{2, "node2", "10.0.0.3:40002"}};
}

// Tries the next candidate, and returns its host.
std::string Next(EndpointCandidates* candidates) {
  candidates->StartLookup();
  candidates->EndLookup(*candidates->lookup_result());
  return candidates->NextAddress().value_or("none");
}

TEST(EndpointCandidates, All_are_tried_in_turn) {
  EndpointCandidates candidates(At({{"10.0.0.9", 29400}}), nullptr);
  EXPECT_EQ(candidates.Endpoints(), "10.0.0.1:29400, 10.0.0.9:29400");
  EXPECT_EQ(Next(&candidates), "10.0.0.1");
  EXPECT_EQ(candidates.NextAddress(), std::nullopt);
  EXPECT_EQ(Next(&candidates), "10.0.0.9");
  EXPECT_EQ(Next(&candidates), "10.0.0.1");
  EXPECT_TRUE(candidates.resolved());
}

TEST(EndpointCandidates, The_leading_voter_comes_next_once_it_is_known) {
  EndpointCandidates candidates(At(), nullptr);
  EXPECT_EQ(Next(&candidates), "10.0.0.1");
  candidates.Learn(Voters());
  EXPECT_EQ(candidates.count(), 3);
  EXPECT_EQ(Next(&candidates), "10.0.0.2");
  EXPECT_EQ(candidates.current().name, "node1");
  EXPECT_FALSE(candidates.at_endpoint());
  EXPECT_EQ(Next(&candidates), "10.0.0.3");
  EXPECT_EQ(Next(&candidates), "10.0.0.1");
}

TEST(EndpointCandidates, A_silent_leader_is_passed_over) {
  EndpointCandidates candidates(At(), nullptr);
  Next(&candidates);
  candidates.Learn(Voters());
  EXPECT_EQ(Next(&candidates), "10.0.0.2");
  candidates.Learn(Voters());
  EXPECT_TRUE(candidates.next_is_current());
  candidates.PassOver();
  EXPECT_EQ(Next(&candidates), "10.0.0.3");
}

TEST(EndpointCandidates, The_turn_is_over_once_another_leads) {
  EndpointCandidates candidates(At(), nullptr);
  Next(&candidates);
  candidates.AddAddress("127.0.0.1");
  candidates.TurnTo(Voters());
  EXPECT_EQ(candidates.NextAddress(), std::nullopt);
  EXPECT_EQ(Next(&candidates), "10.0.0.2");
}

TEST(EndpointCandidates, Known_addresses_and_a_detour_serve_while_the_resolver_is_late) {
  EndpointCandidates candidates(At(), nullptr);
  EXPECT_EQ(Next(&candidates), "10.0.0.1");
  candidates.AddAddress("127.0.0.1");
  candidates.AddAddress("127.0.0.1");
  EXPECT_EQ(candidates.addresses(), 2);
  EXPECT_EQ(candidates.NextAddress(), "127.0.0.1");
  candidates.TryKnownAddresses();
  EXPECT_EQ(candidates.NextAddress(), "10.0.0.1");
}

TEST(EndpointCandidates, What_was_heard_in_another_way_is_not_tried_first) {
  EndpointCandidates candidates(At(), nullptr);
  candidates.Learn(Voters());
  candidates.BeginTurn();
  EXPECT_EQ(Next(&candidates), "10.0.0.2");
}

}  // namespace
}  // namespace hlaunch
