// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/c10d/c10d_server_options.h"
#include "rendezvous/c10d/store_access.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {

// The master store: serves PyTorch's TCPStore clients of 1.9 and later, on a thread of its own
// ("c10d-store"). Thread-safe. An idle server takes no CPU time.
//
// One connection's requests are answered in order, and no connection can hold up another. Bytes
// that are no request, or over a limit, end that connection alone, with one line in the log.
class C10dServer {
 public:
  // Serves what connects to `listener`, or only what is adopted.
  //
  // Errors:
  //   ResourceExhausted - out of descriptors or threads.
  static absl::StatusOr<std::unique_ptr<C10dServer>> Start(std::optional<ListeningSocket> listener,
                                                           C10dServerOptions options = {});

  // Closes every connection and joins the thread.
  ~C10dServer();
  C10dServer(const C10dServer&) = delete;
  C10dServer& operator=(const C10dServer&) = delete;

  // Where it listens; 0 if it does not.
  uint16_t port() const;

  // Serves a connection that was accepted elsewhere and not read from: at most peeked at.
  void Adopt(UniqueFd connection);

  // Closes all connections, those not yet accepted too, and forgets all keys. Whoever connects
  // after it has returned finds an empty store, which serves as `access` says and nodes' proxies
  // that have `sealing_key`; nothing: as before.
  void Reset(std::optional<StoreAccess> access = std::nullopt,
             std::optional<std::string> sealing_key = std::nullopt);

 private:
  class Serving;
  explicit C10dServer(std::unique_ptr<Serving> serving);

  const std::unique_ptr<Serving> serving_;
};

}  // namespace hlaunch
