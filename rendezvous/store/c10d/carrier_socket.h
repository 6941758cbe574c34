// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/net/socket/socket_loop.h"
#include "rendezvous/net/trust/sealed_stream.h"

namespace hlaunch {

// Either end of a connection between a node's proxy and the master store (see store_streams.h). It
// is in clear, or sealed with a key that both ends have. Belongs to its loop's thread.
class CarrierSocket : public LoopSocket {
 public:
  explicit CarrierSocket(UniqueFd fd, size_t* sum = nullptr)
      : LoopSocket(std::move(fd), sum), frames_(sum) {}

  // Seals all that follows. The client's end then has something to send.
  //
  // Errors: as SealedStream::Make.
  absl::Status Seal(SealedStream::Side side, absl::string_view key);

  bool sealed() const { return sealed_ != nullptr; }

  // True if frames may be put: nothing is sealed, or the other end has proved that it has the key.
  bool ready() const { return sealed_ == nullptr || sealed_->established(); }

  // The buffer for frames. Call its Recount after each change.
  SendBuffer& frames() { return sealed_ == nullptr ? out() : frames_; }
  // The bytes that are not sent yet, sealed or not.
  size_t unsent() const { return out().size() + frames_.size(); }

  // Like Send, but sends the frames too. Requires: ready(), or there are no frames.
  bool SendFrames();

  // Opens `bytes`, which came from the socket, and gives the content to `take`. Afterwards there
  // may be something to send, even after an error.
  //
  // Errors: as SealedStream::Take.
  absl::Status Unseal(absl::string_view bytes,
                      absl::FunctionRef<absl::Status(absl::string_view piece)> take);

 private:
  std::unique_ptr<SealedStream> sealed_;  // Null if in clear.
  SendBuffer frames_;                     // Frames that are not sealed yet; empty in clear.
};

}  // namespace hlaunch
