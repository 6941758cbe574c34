// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/store/access/store_access.h"
#include "rendezvous/store/c10d/c10d_server_options.h"

namespace hlaunch {

// The master store: serves PyTorch's TCPStore clients of 1.9 and later, on a thread of its own
// ("c10d-store"). Thread-safe. An idle server takes no CPU time.
//
// One connection's requests are answered in order, and no connection can hold up another. Bytes
// that are not a request, or are over a limit, end only that connection, with one line in the log.
class C10dServer {
 public:
  // Serves the connections to `listener`; without one, only adopted connections.
  //
  // Errors:
  //   ResourceExhausted - out of descriptors or threads.
  static absl::StatusOr<std::unique_ptr<C10dServer>> Start(std::optional<ListeningSocket> listener,
                                                           C10dServerOptions options = {});

  // Closes every connection and joins the thread.
  ~C10dServer();
  C10dServer(const C10dServer&) = delete;
  C10dServer& operator=(const C10dServer&) = delete;

  // Returns the port where it listens; 0 if it does not listen.
  uint16_t port() const;

  // Serves a connection that was accepted elsewhere and not read from; a peek at its bytes is
  // allowed.
  void Adopt(UniqueFd connection);

  // Closes all connections, also those not yet accepted, and removes all keys. A client that
  // connects afterwards finds an empty store. From then on `access` says which clients are served,
  // and proxies that encrypt must have `sealing_key`; an unset argument changes nothing.
  void Reset(std::optional<StoreAccess> access = std::nullopt,
             std::optional<std::string> sealing_key = std::nullopt);

 private:
  class Serving;
  explicit C10dServer(std::unique_ptr<Serving> serving);

  const std::unique_ptr<Serving> serving_;
};

}  // namespace hlaunch
