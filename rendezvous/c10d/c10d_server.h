// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/c10d/c10d_protocol.h"
#include "rendezvous/c10d/store_access.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/store/key_space.h"

namespace hlaunch {

struct C10dServerOptions {
  // What clients are that do not begin with VALIDATE; see C10dParser.
  C10dDialect older = C10dDialect::kUnknown;
  // Whom to serve and where; nothing: all who come.
  std::optional<StoreAccess> access;
  StoreLimits limits = {.by_option = true};
  // A connection with more unread replies than this is not read until its client has read.
  size_t max_unread_bytes = 1 << 20;
  // How long a client of PyTorch 2.0 or earlier waits for its first delete_key, which begins like
  // the append of 2.1: longer than TCP's shortest retransmission, so a late payload is not lost.
  Duration silence = std::chrono::milliseconds(250);
};

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
  // after it has returned finds an empty store, which serves as `access` says; nothing: as before.
  void Reset(std::optional<StoreAccess> access = std::nullopt);

 private:
  class Loop;
  explicit C10dServer(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace hlaunch
