// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/net/port/frame_heads.h"

namespace hlaunch {

// Finds the frames in one direction of an HTTP/2 connection in clear (RFC 9113, 4.1), whose bytes
// come in pieces. A value.
class Http2Frames {
 public:
  static constexpr uint8_t kData = 0;
  static constexpr uint8_t kHeaders = 1;
  static constexpr uint8_t kEndOfStream = 1;  // A flag of these two.

  // `before`: that many bytes come before the first frame.
  explicit Http2Frames(size_t before) : heads_(before) {}

  // Calls `found` for each frame whose head ends in `bytes`.
  void Read(absl::string_view bytes, absl::FunctionRef<void(uint8_t type, uint8_t flags)> found);

 private:
  FrameHeads<9> heads_;
};

// Counts the streams that a client has opened on one HTTP/2 connection and that the server has not
// ended. gRPC 1.51 limits them as long as the client does not reset them; a stream that was reset
// is not counted by it any more, but takes memory until the server has got round to it. The meter
// goes on counting such streams and forgets some of them with time. So a client that opens and
// resets streams without end is recognized after a few, and one that makes any number of calls one
// after another never is. A value.
class StreamMeter {
 public:
  // An agent cancels the few calls that it has when it leaves, and a call that was not answered in
  // time.
  static constexpr double kMostUnended = 48;
  static constexpr double kForgottenPerSecond = 16;

  explicit StreamMeter(Instant now) : counted_(now) {}

  // The client has sent `bytes`. Returns false if it has too many streams now.
  bool Received(absl::string_view bytes, Instant now);
  // The server has sent `bytes`.
  void Sent(absl::string_view bytes);

 private:
  static constexpr size_t kPrefaceBytes = 24;

  Http2Frames from_client_{kPrefaceBytes};
  Http2Frames from_server_{0};
  Instant counted_;
  double unended_ = 0;
};

}  // namespace hlaunch
