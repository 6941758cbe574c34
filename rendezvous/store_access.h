// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstdint>
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

// Who may use the master store, besides this host itself.
struct StoreAccess {
  std::vector<AddressRange> known;
  bool refuse_others = false;  // Else they are accepted, with a warning.
};

// What `--store-allow` says: addresses and ranges, as in "10.0.0.7,10.1.0.0/16,fd00::/8".
//
// Errors:
//   InvalidArgument - an entry is neither; the message names it.
absl::StatusOr<StoreAccess> ParseStoreAllow(absl::string_view list);

// The address of a socket's peer. All zero if it has none.
StoreAddress ToStoreAddress(const sockaddr& peer);

struct AdmissionVerdict {
  bool admitted = true;
  std::string reason;  // For the log, once for each source; empty if it is known.
};

// Decides whether the store serves a connection from `source`. Pure.
AdmissionVerdict DecideAdmission(const StoreAccess& access, const StoreAddress& source);

}  // namespace hlaunch
