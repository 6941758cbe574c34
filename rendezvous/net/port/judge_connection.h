// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/net/port/first_words.h"

namespace hlaunch {

// Where a connection goes, judged by its first words.
struct ConnectionVerdict {
  // kGreeted: to gRPC, once it has proved that it holds the token. The rest goes on as it is.
  enum class To { kGrpc, kGreeted, kC10d, kNobody };

  To to = To::kNobody;
  // For kNobody: what the peer is told, in a protocol that it understands (empty: nothing), and the
  // reason for the log.
  std::string answer;
  std::string reason;
};

// What a port accepts.
struct PortRule {
  // The name that a client must ask for in its greeting to be handed to gRPC. Empty: gRPC is in
  // clear here, for every client. kAnyServerName: no greeting, but TLS.
  std::string server_name;
  bool in_clear = false;    // No TLS follows the greeting.
  bool takes_c10d = false;  // The port is also a store's.
};

// Any client that speaks TLS may come, except one that asks for a name derived from a token.
inline constexpr char kAnyServerName[] = "*";

// Decides where a connection goes. A stranger without the token costs no TLS handshake. Pure.
ConnectionVerdict JudgeConnection(const FirstWords& words, const PortRule& rule);

}  // namespace hlaunch
