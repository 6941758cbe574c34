// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// This is how a node's proxy carries the connections of its workers to the master store on one
// connection of its own. After the proxy's kStreamsGreeting both ends send frames: a stream's
// number and a length, 32 bits each, little-endian, then that many bytes. A stream begins with its
// first frame, under a number that was not used before. Its content is a c10d connection, byte for
// byte. Either end closes a stream with an empty frame, and forgets it once the other end has done
// so, too.
//
// Or the connection is sealed: after the greeting's first byte comes a stream of TLS (see
// sealed_stream.h), which holds the frames.

namespace hlaunch {

// Its first byte begins neither a c10d request nor a gRPC connection.
inline constexpr absl::string_view kStreamsGreeting("\x15hlaunch", 8);
inline constexpr char kSealedSecond = 0x16;  // The first byte of TLS: tells the two apart.

// Appends a frame to `out`. `bytes` has at most 4 GiB less one byte; empty bytes end the stream.
void PutFrame(std::string* out, uint32_t stream, absl::string_view bytes);

// Parses frames as their bytes come. Belongs to one thread.
class StreamFrameReader {
 public:
  // `greeted`: the bytes begin with the greeting.
  explicit StreamFrameReader(bool greeted) : greeting_left_(greeted ? kStreamsGreeting : "") {}

  // Calls `take` for each piece of a frame in `bytes`, and with an empty piece for a stream's end.
  //
  // Errors:
  //   InvalidArgument - the bytes do not begin with the greeting.
  absl::Status Take(absl::string_view bytes,
                    absl::FunctionRef<void(uint32_t stream, absl::string_view piece)> take);

 private:
  absl::string_view greeting_left_;
  std::array<char, 8> head_{};
  size_t head_size_ = 0;
  uint32_t stream_ = 0;
  size_t left_ = 0;  // The bytes of this frame still to come.
};

}  // namespace hlaunch
