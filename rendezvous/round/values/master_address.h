// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Returns the address at which all members of a round reach node rank 0, which is `members[0]`.
// `members` are in rank order, and none is null. The address is a literal, IPv6 without brackets.
// Pure.
//
// It is the node's own address, unless that is loopback: then the node shares a host with the
// rendezvous, and the rendezvous' address on its route to a member on another host is used. It is
// loopback only if all members share that host.
std::string MasterAddress(const std::vector<const NodeInfo*>& members);

// Returns those of `local`, the literal addresses of a host's interfaces, that the host announces:
// at most kMaxOtherAddresses, IPv4 first. Addresses that every host has (loopback, link-local) are
// left out. Pure.
std::vector<std::string> SelectAnnounced(const std::vector<std::string>& local);

// Returns the addresses from which the workers of a round's `members` may come to the master store,
// each once. These are all that the nodes announce, because workers take their own route to the
// store, and what the rendezvous sees of the nodes, because there may be a NAT between. For a node
// that shares a host with the rendezvous, they are also the rendezvous' addresses on its routes to
// the others. If there are very many nodes, fewer of each are taken, so that all announced ones
// together are at most kMaxMemberAddresses. Pure.
std::vector<std::string> MemberAddresses(const std::vector<const NodeInfo*>& members);

// Returns whether no other host can reach this literal: loopback (127/8, ::1, also as ::ffff:127…),
// unspecified, empty or no address at all.
bool IsLoopback(absl::string_view address);

}  // namespace hlaunch
