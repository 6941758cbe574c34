// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "asio/ssl/context.hpp"
#include "rendezvous/trust/cluster_authority.h"

// What OpenSSL is to believe and to show at each end of a cluster's connections: TLS 1.3 alone,
// with P-256, without tickets, so that each connection proves itself anew. For this room alone.

namespace hlaunch {

using TlsContext = std::shared_ptr<asio::ssl::context>;  // Owned by its connections, too.

// Whether it is no matter that this host's certificate has expired.
using Forgives = std::function<bool(const CertifiedHost&)>;

// The head's. Who shows a certificate must show a host's of this authority; one without is a
// stranger. It shows the authority's certificate, too, by whose pin strangers know it. `forgives`
// may be unset, and forgives nobody then.
//
// Errors, of all three:
//   InvalidArgument - what is to be shown or believed is not whole; the message says what.
//   Internal - OpenSSL refuses.
absl::StatusOr<TlsContext> TlsOfServer(const HostIdentity& identity, Forgives forgives = nullptr);

// A node daemon's, which believes the head of its authority alone: no other host can be it.
absl::StatusOr<TlsContext> TlsOfHost(const HostIdentity& identity);

// Of one who is to become a host, and believes the head of the authority with this pin.
absl::StatusOr<TlsContext> TlsOfStranger(const std::string& pin);

// Why the handshake of `tls` failed, or what the other end said of ours, in words; `error` is what
// the stream said.
std::string WhyNoTls(SSL* tls, const asio::error_code& error);

}  // namespace hlaunch
