// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "launcher/report/query/ask_words.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

// The common part of the commands that ask a rendezvous.

namespace hlaunch {

// Returns the rendezvous that `words` name, with the secret or the certificates that this user has
// for it. Prints the warnings about those.
//
// Errors: as FindCredentials and Trust::Of.
absl::StatusOr<RendezvousEndpoint> EndpointToAsk(const AskWords& words);

}  // namespace hlaunch
