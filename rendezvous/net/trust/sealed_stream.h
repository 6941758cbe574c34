// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns the key for the streams of a round's master store, made from the secret that the round's
// agents share. Empty if there is no secret, or OpenSSL refuses.
std::string SealingKey(absl::string_view round_secret);

// One end of a connection whose two ends have the same key: TLS 1.3 with that pre-shared key and a
// new key exchange (RFC 8446, 2.2: psk_dhe_ke), so without certificates. A peer without the key
// does not get past the handshake; a peer that learns the key later cannot read recorded traffic.
// Knows no socket: bytes come in and go out. Belongs to one thread.
class SealedStream {
 public:
  enum class Side { kClient, kServer };

  // A client begins with Take("").
  //
  // Errors:
  //   InvalidArgument - `key` is not one of SealingKey.
  //   Internal - OpenSSL refuses.
  static absl::StatusOr<std::unique_ptr<SealedStream>> Make(Side side, absl::string_view key);
  ~SealedStream();
  SealedStream(const SealedStream&) = delete;
  SealedStream& operator=(const SealedStream&) = delete;

  // True once the other end has proved that it has the key.
  bool established() const { return established_; }

  // Takes bytes that have come from the other end. Gives their content to `take`, in pieces, and
  // appends what is to be sent to `wire`, even on an error. After an error the stream is useless.
  //
  // Errors:
  //   PermissionDenied - the other end has another key or none, or does not speak this protocol.
  //   Unavailable - the other end has ended the stream.
  //   What `take` returns.
  absl::Status Take(absl::string_view bytes, std::string* wire,
                    absl::FunctionRef<absl::Status(absl::string_view piece)> take);

  // Appends `plain`, sealed, to `wire`. Requires: established().
  //
  // Errors:
  //   Internal - OpenSSL refuses.
  absl::Status Put(absl::string_view plain, std::string* wire);

 private:
  struct State;
  explicit SealedStream(std::unique_ptr<State> state);
  absl::Status Handshake();
  absl::Status Fill(char* to, size_t room, size_t* size);
  absl::Status Failure(int result) const;

  const std::unique_ptr<State> state_;
  bool established_ = false;
};

}  // namespace hlaunch
