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

// Addresses that begin with the same `bits` bits.
struct AddressRange {
  StoreAddress first{};
  int bits = 0;
};

// Who may use the master store, besides this host itself, and where. A value.
struct StoreAccess {
  bool members = true;              // The members of the round may;
  std::vector<StoreAddress> named;  // these are their addresses, in order.
  std::vector<AddressRange> known;  // These may as well.
  // Others are refused; else they are served, and named. Nobody asked for that: only where the
  // round's addresses are those that connections show, see AccessOfRound.
  bool refuse_others = true;
  bool asked_for = false;
  // The one address besides loopback at which it serves; nothing: at all of its listener's.
  std::optional<StoreAddress> at;
};

// What `--store-allow` says: the words members and all, addresses and ranges, as in
// "members,10.0.0.7,10.1.0.0/16,fd00::/8".
//
// Errors:
//   InvalidArgument - an entry is none of these; the message names it.
absl::StatusOr<StoreAccess> ParseStoreAllow(absl::string_view list);

// `wished`, for a round whose members come from these literals, at `own`: MASTER_ADDR if that is an
// address of this host, else empty (it leads here by a NAT or a virtual address, and connections
// show another). Pure.
StoreAccess AccessOfRound(StoreAccess wished, const std::vector<std::string>& members,
                          const std::string& own);

// The address in `socket`. All zero if it has none.
StoreAddress ToStoreAddress(const sockaddr& socket);

struct AdmissionVerdict {
  bool admitted = true;
  std::string reason;  // For the log, once for each source; empty if it is known.
};

// Decides whether the store serves a connection from `source` to this host's `local`. Pure.
AdmissionVerdict DecideAdmission(const StoreAccess& access, const StoreAddress& source,
                                 const StoreAddress& local);

}  // namespace hlaunch
