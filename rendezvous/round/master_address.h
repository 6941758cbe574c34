// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// The address at which all members of a round reach the node with rank 0: `members[0]`, of
// members in rank order, none null. A literal, IPv6 without brackets. Pure.
//
// A node's own address holds unless it is loopback, which means that the node shares a host
// with the rendezvous: then the rendezvous' address on the route to a member elsewhere is
// node 0's as well. Loopback only if all members share that host.
std::string MasterAddress(const std::vector<const NodeInfo*>& members);

// Of the addresses of a host's interfaces, literals, those that it announces: at most
// kMaxOtherAddresses, IPv4 first, none of which every host has (loopback, link-local). Pure.
std::vector<std::string> SelectAnnounced(const std::vector<std::string>& local);

// The addresses from which the workers of a round's `members` may come to the master store, each
// once: all that the nodes announce, for workers take their own route to the store, and where a NAT
// lies between, what the rendezvous sees of them. For a node that shares a host with the
// rendezvous, also all that the rendezvous has on its routes to the others. Of very many nodes each
// has fewer, so that it is kMaxMemberAddresses in all besides. Pure.
std::vector<std::string> MemberAddresses(const std::vector<const NodeInfo*>& members);

// Whether nobody on another host can reach this literal: loopback (127/8, ::1, also as
// ::ffff:127…), unspecified, empty or no address at all.
bool IsLoopback(absl::string_view address);

}  // namespace hlaunch
