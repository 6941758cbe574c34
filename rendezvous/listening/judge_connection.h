// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/listening/first_words.h"

namespace hlaunch {

// Where a connection goes, by its first words.
struct ConnectionVerdict {
  enum class To { kGrpc, kC10d, kNobody };

  To to = To::kNobody;
  // Of kNobody: what the other side is told, in a protocol that it understands (empty: nothing),
  // and the reason for the log.
  std::string answer;
  std::string reason;
};

// Any client that speaks TLS may come, except one that asks for a name derived from a token.
inline constexpr char kAnyServerName[] = "*";

// `server_name` is what a TLS client must ask for to be handed to gRPC; empty: gRPC is in clear
// here. `takes_c10d` says whether the port is also a store's. A stranger who cannot name the server
// costs no handshake. Pure.
ConnectionVerdict JudgeConnection(const FirstWords& words, const std::string& server_name,
                                  bool takes_c10d);

}  // namespace hlaunch
