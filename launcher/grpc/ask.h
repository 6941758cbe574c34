// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/ask/ask_words.h"
#include "launcher/words/endpoint.h"
#include "rendezvous/grpc/grpc_rendezvous_client.h"

// What the commands that ask a rendezvous have in common.

namespace hlaunch {

// The rendezvous that `words` name, with the secret or the certificates that this user has for it;
// says what is to be said of those.
//
// Errors: as FindCredentials and Trust::Of.
absl::StatusOr<RendezvousEndpoint> EndpointToAsk(const AskWords& words);

// Says it and returns `code`.
int FailToAsk(const absl::Status& status, int code);

// Prints a text that strangers have a part in, and returns what to exit with.
int PrintAnswer(const std::string& text);

// As RendezvousEndpoint::others has them.
std::vector<std::pair<std::string, uint16_t>> PlacesOf(const std::vector<Endpoint>& endpoints);

}  // namespace hlaunch
