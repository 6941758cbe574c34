// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "proto/base/clock.h"
#include "rendezvous/store/access/store_access.h"
#include "rendezvous/store/c10d/c10d_protocol.h"
#include "rendezvous/store/keys/key_space.h"

namespace hlaunch {

// How a master store serves its clients. A value.
struct C10dServerOptions {
  // The dialect of clients that do not begin with VALIDATE; see C10dParser.
  C10dDialect older = C10dDialect::kUnknown;
  // Which clients are served, and at which address. Unset: all clients.
  std::optional<StoreAccess> access;
  // The SealingKey for nodes' proxies that encrypt; empty if there are none.
  std::string sealing_key = {};
  StoreLimits limits = {.by_option = true};
  // A connection with more unread replies than this is not read until its client has read.
  size_t max_unread_bytes = 1 << 20;
  // The limit of silent clients from addresses of which none has completed a request. Beyond it,
  // those that are silent for `silent_patience` are closed, the oldest first. (PyTorch before 2.1
  // has a second, silent connection, but from the same address as its first.)
  size_t max_silent = 1024;
  Duration silent_patience = std::chrono::seconds(60);
  // How long a client of PyTorch 2.0 or earlier waits for its first delete_key, which begins like
  // the append of 2.1: longer than TCP's shortest retransmission, so a late payload is not lost.
  Duration silence = std::chrono::milliseconds(250);
};

}  // namespace hlaunch
