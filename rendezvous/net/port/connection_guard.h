// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/net/port/stream_meter.h"
#include "rendezvous/net/port/tls_progress.h"

namespace hlaunch {

// Judges the bytes of one connection of gRPC's before gRPC sees them. In clear it counts the
// client's streams; over TLS it only finds out when the handshake is over. Thread-safe.
class ConnectionGuard {
 public:
  enum class Kind { kClear, kTls };

  // `floods` counts the connections that were found to be floods.
  ConnectionGuard(Kind kind, std::shared_ptr<std::atomic<uint64_t>> floods);

  // The client has sent `bytes`. Returns false if it floods the server, which then must not see
  // these bytes nor any more of the connection.
  bool Received(absl::string_view bytes);
  // The server has sent `bytes`.
  void Sent(absl::string_view bytes);

  bool flooded() const { return flooded_; }
  // Returns true once a TLS handshake is over, however it went.
  bool shaken() const { return shaken_; }

 private:
  const std::shared_ptr<std::atomic<uint64_t>> floods_;
  std::atomic<bool> flooded_ = false;
  std::atomic<bool> shaken_ = false;
  Mutex mu_;
  std::optional<StreamMeter> meter_ ABSL_GUARDED_BY(mu_);  // Set in clear.
  TlsProgress progress_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
