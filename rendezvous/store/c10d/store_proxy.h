// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {

struct StoreProxyOptions {
  std::string address;  // The master store's address: a literal without brackets.
  uint16_t port = 0;
  // A client that leaves more replies than this unread is closed, since it would hold up the
  // others. The limit is more than the largest reply and one more reply.
  size_t max_unread_bytes = 256 << 20;
  // The SealingKey, which the store must have too. What passes between both is then encrypted; if
  // the key is empty, it is in clear.
  std::string sealing_key = {};
  bool any_user = false;  // It serves all users of this host.
};

// A node's own connection to the master store, on a thread ("store-proxy"). Over it, if it is
// sealed, the store asks whose the connections are that workers of this host make to it (see
// Vouching). And with a listener this is a stand-in for the store on this node: it carries the
// connections of the node's workers byte for byte (see store_streams.h). It keeps and decides
// nothing, so workers see what they would see at the store itself. It serves the processes of this
// user and of root, if not all. Thread-safe.
//
// While the store cannot be reached, clients wait. If the connection breaks, the clients'
// connections are closed, as if each had broken, and the proxy connects anew.
class StoreProxy {
 public:
  // Errors:
  //   InvalidArgument - the address is not a literal.
  //   ResourceExhausted - out of descriptors or threads.
  static absl::StatusOr<std::unique_ptr<StoreProxy>> Start(std::optional<ListeningSocket> listener,
                                                           StoreProxyOptions options);

  // Closes every connection and joins the thread.
  ~StoreProxy();
  StoreProxy(const StoreProxy&) = delete;
  StoreProxy& operator=(const StoreProxy&) = delete;

  // Call this when all workers of this node have succeeded: then the loss of the store is not
  // reported.
  void WorkersAreDone();

  uint16_t port() const;  // 0 without a listener.

 private:
  class Carrying;
  explicit StoreProxy(std::unique_ptr<Carrying> carrying);

  const std::unique_ptr<Carrying> carrying_;
};

}  // namespace hlaunch
