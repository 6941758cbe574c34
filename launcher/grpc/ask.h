// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/report/query/ask_words.h"
#include "launcher/text/endpoint.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

// The common part of the commands that ask a rendezvous.

namespace hlaunch {

// Returns the rendezvous that `words` name, with the secret or the certificates that this user has
// for it. Prints the warnings about those.
//
// Errors: as FindCredentials and Trust::Of.
absl::StatusOr<RendezvousEndpoint> EndpointToAsk(const AskWords& words);

// The places in the form of RendezvousEndpoint::others.
std::vector<std::pair<std::string, uint16_t>> PlacesOf(const std::vector<Endpoint>& endpoints);

}  // namespace hlaunch
