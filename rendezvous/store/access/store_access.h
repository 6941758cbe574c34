// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sockaddr;

namespace hlaunch {

// An IPv6 address; an IPv4 one as ::ffff:a.b.c.d, so that both families compare alike.
using StoreAddress = std::array<uint8_t, 16>;

// The addresses whose first `bits` bits are those of `first`.
struct AddressRange {
  StoreAddress first{};
  int bits = 0;
};

// Which hosts may use the master store, besides this host itself, and at which address. A value.
struct StoreAccess {
  bool members = true;              // The members of the round may use it.
  std::vector<StoreAddress> named;  // The addresses of the members, sorted.
  std::vector<AddressRange> known;  // These addresses may use it too.
  // If true, other clients are refused; else they are served, with a warning. Without `asked_for`
  // (the user gave --store-allow) they are refused only if connections show the addresses that the
  // round's members have announced: see AccessOfRound.
  bool refuse_others = true;
  bool asked_for = false;
  // Members are served only if the agent of their host vouches for the connection, see Vouching.
  // The agents must then have a secret to prove themselves by.
  bool vouched = false;
  bool any_user = false;  // All users of the members' hosts may use it: nobody is asked.
  // The only address besides loopback at which it serves; unset: all addresses of its listener.
  std::optional<StoreAddress> at;
};

// Parses the value of `--store-allow`: the words members and all, addresses and ranges, as in
// "members,10.0.0.7,10.1.0.0/16,fd00::/8".
//
// Errors:
//   InvalidArgument - an entry is none of these; the message names it.
absl::StatusOr<StoreAccess> ParseStoreAllow(absl::string_view list);

// Returns `wished` for a round whose members come from these literals. `own` is MASTER_ADDR if that
// is an address of this host, else empty: then MASTER_ADDR leads here by a NAT or a virtual
// address, and connections show another address. Pure.
StoreAccess AccessOfRound(StoreAccess wished, const std::vector<std::string>& members,
                          const std::string& own);

// The address in `socket`. All zero if it has none.
StoreAddress ToStoreAddress(const sockaddr& socket);

// The address of `literal`, which may have an IPv6 zone; unset if it is none. Pure.
std::optional<StoreAddress> ParseStoreAddress(const std::string& literal);

// One end of a connection. All zero if it is not connected any more.
struct SocketEnd {
  StoreAddress address{};
  uint16_t port = 0;
};
SocketEnd RemoteEndOf(int fd);
SocketEnd LocalEndOf(int fd);

enum class Admission {
  kServe,
  kRefuse,
  kAskKernel,  // It comes from this host, whose kernel knows whose it is: see CheckPeerIsOwn.
  kAskAgent,   // It comes from another host, whose agent knows whose it is: see Vouching.
};

struct AdmissionVerdict {
  Admission admission = Admission::kServe;
  std::string reason;  // For the log, once per source; empty if the source is known.
};

// The option that admits `source` besides the members, and the address as people write it. Pure.
std::string AllowingOption(const StoreAddress& source);
std::string ShowStoreAddress(const StoreAddress& address);

// Decides whether the store serves a connection from `source` to this host's `local`. Pure.
AdmissionVerdict DecideAdmission(const StoreAccess& access, const StoreAddress& source,
                                 const StoreAddress& local);

}  // namespace hlaunch
