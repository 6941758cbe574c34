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

// How a node's proxy carries the connections of its workers to the master store on one of its own:
// after kStreamsGreeting, in both directions frames of a stream's number and a length, 32 bits
// each, little-endian, and so many bytes. A stream begins with its first frame, under a number that
// was not used before, and what is in it is a c10d connection, byte for byte. Either end ends it
// with a frame that is empty, and forgets it once the other has, too.
//
// Or it is sealed: after the greeting's first byte comes a stream of TLS (see sealed_stream.h),
// which holds the frames.

namespace hlaunch {

// Its first byte is no c10d request and not gRPC's.
inline constexpr absl::string_view kStreamsGreeting("\x15hlaunch", 8);
inline constexpr char kSealedSecond = 0x16;  // The first byte of TLS: tells the two apart.

// At most 4 GiB less one byte; empty ends the stream.
void PutFrame(std::string* out, uint32_t stream, absl::string_view bytes);

// Takes frames apart as their bytes come. Belongs to one thread.
class StreamFrameReader {
 public:
  // `greeted`: what comes begins with the greeting.
  explicit StreamFrameReader(bool greeted) : greeting_left_(greeted ? kStreamsGreeting : "") {}

  // Calls `take` for each piece of a frame in `bytes`, and with an empty one for an end.
  //
  // Errors:
  //   InvalidArgument - not the greeting.
  absl::Status Take(absl::string_view bytes,
                    absl::FunctionRef<void(uint32_t stream, absl::string_view piece)> take);

 private:
  absl::string_view greeting_left_;
  std::array<char, 8> head_{};
  size_t head_size_ = 0;
  uint32_t stream_ = 0;
  size_t left_ = 0;  // Of this frame's bytes.
};

}  // namespace hlaunch
