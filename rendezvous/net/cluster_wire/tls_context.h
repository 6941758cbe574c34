// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "asio/ssl/context.hpp"
#include "rendezvous/net/trust/cluster_authority.h"

// The set-up of OpenSSL for each end of a cluster's connections: what it trusts and what it shows.
// Only TLS 1.3 with P-256 is used, without tickets, so that each connection proves its identity
// again. Used in this folder only.

namespace hlaunch {

using TlsContext = std::shared_ptr<asio::ssl::context>;  // Owned by its connections, too.

// Returns true if this host's certificate is accepted though it has expired.
using Forgives = std::function<bool(const CertifiedHost&)>;

// Returns the head's context. A client that shows a certificate must show that of a host of this
// authority; a client that shows none is a stranger. The head also shows the authority's
// certificate, by whose pin strangers recognize the head. If `forgives` is unset, no expired
// certificate is accepted.
//
// Errors, of all three:
//   InvalidArgument - a certificate or key is damaged; the message says which.
//   Internal - OpenSSL fails.
absl::StatusOr<TlsContext> TlsOfServer(const HostIdentity& identity, Forgives forgives = nullptr);

// Returns a node daemon's context. It trusts only the head of its authority: no other host can pass
// for the head.
absl::StatusOr<TlsContext> TlsOfHost(const HostIdentity& identity);

// Returns the context of a machine that wants to become a host. It trusts the head of the authority
// with this pin.
absl::StatusOr<TlsContext> TlsOfStranger(const std::string& pin);

// Returns in words why the handshake of `tls` failed, or why the peer rejected ours. `error` is the
// stream's error.
std::string WhyNoTls(SSL* tls, const asio::error_code& error);

}  // namespace hlaunch
