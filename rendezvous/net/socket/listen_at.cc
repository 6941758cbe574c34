// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/listen_at.h"

#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {

absl::StatusOr<ListeningSocket> ListenAt(const std::string& host, uint16_t port) {
  if (host.empty() || IsAddressLiteral(host)) return Listen(host, port);
  HLAUNCH_ASSIGN_OR_RETURN(const auto addresses, ResolveHost(host));
  absl::StatusOr<ListeningSocket> listening = absl::UnavailableError("no address");
  for (const std::string& address : addresses) {
    listening = Listen(address, port);
    if (!absl::IsInvalidArgument(listening.status())) break;  // It is an address of this host.
  }
  return listening;
}

}  // namespace hlaunch
