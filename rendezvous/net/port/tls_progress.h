// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "rendezvous/net/port/frame_heads.h"

namespace hlaunch {

// Finds out when a TLS handshake is over, from the heads of the client's records (RFC 8446, 5.1)
// and from when the server sends. A server answers the client's records in clear with its part of
// the handshake. After that it sends nothing until the client's part, which is protected in TLS
// 1.3, has come as a whole and was judged. A value.
class TlsProgress {
 public:
  // The client has sent `bytes`.
  void Received(absl::string_view bytes);
  // The server sends something. Returns whether the handshake is over.
  bool Sends();

 private:
  static constexpr uint8_t kHandshake = 22;
  static constexpr uint8_t kApplicationData = 23;

  FrameHeads<5> heads_;
  bool answered_ = false;  // The server has sent something since the client's last record in clear.
  bool protected_ = false;  // Since then the client has begun a record of protected data.
};

}  // namespace hlaunch
