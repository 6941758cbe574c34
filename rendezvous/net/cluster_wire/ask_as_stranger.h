// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"

namespace hlaunch {

// Asks the head at `host` and `port` one question, as a peer without a certificate may. Sends
// nothing before the head has shown that its authority has this pin (KeyPinOf). Blocks for
// `patience` at most. Thread-safe.
//
// Errors: the head's own, and
//   Unavailable - the head cannot be reached, or the connection broke.
//   Unauthenticated - the peer is not the head of that authority.
//   DeadlineExceeded - there is no answer in time.
absl::StatusOr<nlohmann::json> AskAsStranger(const std::string& host, uint16_t port,
                                             const std::string& pin, const Envelope& question,
                                             Duration patience);

}  // namespace hlaunch
