// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// How the processes of a cluster of one's own cut a stream into messages: four bytes of length, the
// most significant first, and so many bytes of one JSON object. The same on the node daemon's local
// socket and inside TLS between node daemons and the head. All is pure.

namespace hlaunch {

// Of what a user says to a node daemon, and of what daemons and head say to each other.
inline constexpr size_t kMaxUserFrame = 1 << 20;
inline constexpr size_t kMaxClusterFrame = 4 << 20;
// Of who has not shown a certificate.
inline constexpr size_t kMaxStrangerFrame = 16 << 10;

// Requires: `json` is no longer than a frame may be.
std::string EncodeFrameOf(absl::string_view json);

// Cuts what comes into frames. Belongs to one thread.
class FrameReader {
 public:
  explicit FrameReader(size_t max_frame) : max_frame_(max_frame) {}

  // Takes what has come; the frames that are whole by now, in their order.
  //
  // Errors:
  //   InvalidArgument - a frame is longer than `max_frame` or empty; no more can be read then.
  absl::StatusOr<std::vector<std::string>> Take(absl::string_view bytes);

  // What has come of a frame that is not whole.
  size_t waiting() const { return bytes_.size(); }
  void set_max_frame(size_t max_frame) { max_frame_ = max_frame; }

 private:
  size_t max_frame_;
  std::string bytes_;
};

}  // namespace hlaunch
