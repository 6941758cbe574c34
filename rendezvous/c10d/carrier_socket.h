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
#include "rendezvous/listening/socket_loop.h"
#include "rendezvous/trust/sealed_stream.h"

namespace hlaunch {

// A connection between a node's proxy and the master store (see store_streams.h), at either end: in
// clear, or sealed with a key that both have. Belongs to its loop's thread.
class CarrierSocket : public LoopSocket {
 public:
  explicit CarrierSocket(UniqueFd fd, size_t* sum = nullptr)
      : LoopSocket(std::move(fd), sum), frames_(sum) {}

  // Seals all that follows. The client's end then has something to send.
  //
  // Errors: as SealedStream::Make.
  absl::Status Seal(SealedStream::Side side, absl::string_view key);

  // Whether frames may be put: nothing is sealed, or the other end has proved that it has the key.
  bool ready() const { return sealed_ == nullptr || sealed_->established(); }

  // Where frames are put. Call its Recount after that.
  SendBuffer& frames() { return sealed_ == nullptr ? out() : frames_; }
  // What is not sent yet, sealed or not.
  size_t unsent() const { return out().size() + frames_.size(); }

  // As Send, of the frames too. Requires: ready(), or there are none.
  bool SendFrames();

  // Gives what `bytes`, which came off the socket, hold to `take`. There may be something to send
  // afterwards, also if it fails.
  //
  // Errors: as SealedStream::Take.
  absl::Status Unseal(absl::string_view bytes,
                      absl::FunctionRef<absl::Status(absl::string_view piece)> take);

 private:
  std::unique_ptr<SealedStream> sealed_;  // Null: in clear.
  SendBuffer frames_;                     // Not sealed yet; empty in clear.
};

}  // namespace hlaunch
