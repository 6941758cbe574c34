// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// How the processes of a cluster of hlaunchd cut a stream into messages: four bytes of length, the
// most significant first, and as many bytes of one JSON object. The node daemon's local socket and
// the TLS connections between node daemons and the head use the same format. All is pure.

namespace hlaunch {

// The limits for what a user sends to a node daemon, and for what daemons and head send to each
// other.
inline constexpr size_t kMaxUserFrame = 1 << 20;
inline constexpr size_t kMaxClusterFrame = 4 << 20;
// The limit for a peer that has not shown a certificate.
inline constexpr size_t kMaxStrangerFrame = 16 << 10;

// Requires: `json` is no longer than a frame may be.
std::string EncodeFrameOf(absl::string_view json);

// Cuts received bytes into frames. Belongs to one thread.
class FrameReader {
 public:
  explicit FrameReader(size_t max_frame) : max_frame_(max_frame) {}

  // Takes received bytes and returns the frames that are now whole, in their order.
  //
  // Errors:
  //   InvalidArgument - a frame is longer than `max_frame` or empty; nothing more can be read then.
  absl::StatusOr<std::vector<std::string>> Take(absl::string_view bytes);

  // The number of bytes of the incomplete frame.
  size_t waiting() const { return bytes_.size(); }
  void set_max_frame(size_t max_frame) { max_frame_ = max_frame; }

 private:
  size_t max_frame_;
  std::string bytes_;
};

}  // namespace hlaunch
