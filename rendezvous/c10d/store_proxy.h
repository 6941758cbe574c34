// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {

struct StoreProxyOptions {
  std::string address;  // Of the master store: a literal without brackets.
  uint16_t port = 0;
  // A client that leaves more replies than this unread is closed, for it would hold up the
  // others: more than the largest reply and one more.
  size_t max_unread_bytes = 256 << 20;
  // As of SealingKey: the store must have it too, and what passes between both is encrypted. Empty:
  // it is in clear.
  std::string sealing_key = {};
};

// A stand-in for the master store on a node: carries its workers' connections there on one of its
// own, byte for byte (see store_streams.h), on a thread ("store-proxy"). Keeps and decides nothing,
// so workers see what they would see at the store itself. Thread-safe.
//
// While the store cannot be reached clients wait; if the connection breaks theirs are closed, as
// if each had broken, and it connects anew.
class StoreProxy {
 public:
  // Errors:
  //   InvalidArgument - the address is no literal.
  //   ResourceExhausted - out of descriptors or threads.
  static absl::StatusOr<std::unique_ptr<StoreProxy>> Start(ListeningSocket listener,
                                                           StoreProxyOptions options);

  // Closes every connection and joins the thread.
  ~StoreProxy();
  StoreProxy(const StoreProxy&) = delete;
  StoreProxy& operator=(const StoreProxy&) = delete;

  // All workers of this node have ended well: nobody is told if the store goes from now on.
  void WorkersAreDone();

  uint16_t port() const;

 private:
  class Carrying;
  explicit StoreProxy(std::unique_ptr<Carrying> carrying);

  const std::unique_ptr<Carrying> carrying_;
};

}  // namespace hlaunch
