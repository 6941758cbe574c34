// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/stream_meter.h"

#include <algorithm>
#include <cstddef>

namespace hlaunch {

void Http2Frames::Read(absl::string_view bytes,
                       absl::FunctionRef<void(uint8_t type, uint8_t flags)> found) {
  heads_.Read(bytes, [&](const auto& head) {
    found(head[3], head[4]);
    return size_t{head[0]} << 16 | size_t{head[1]} << 8 | head[2];
  });
}

bool StreamMeter::Received(absl::string_view bytes, Instant now) {
  using Seconds = std::chrono::duration<double>;
  unended_ -= kForgottenPerSecond * std::chrono::duration_cast<Seconds>(now - counted_).count();
  unended_ = std::max(unended_, 0.0);
  counted_ = now;
  from_client_.Read(bytes, [this](uint8_t type, uint8_t) {
    if (type == Http2Frames::kHeaders) ++unended_;
  });
  return unended_ <= kMostUnended;
}

void StreamMeter::Sent(absl::string_view bytes) {
  from_server_.Read(bytes, [this](uint8_t type, uint8_t flags) {
    const bool has_flag = type == Http2Frames::kData || type == Http2Frames::kHeaders;
    if (has_flag && (flags & Http2Frames::kEndOfStream) != 0) {
      unended_ = std::max(unended_ - 1, 0.0);
    }
  });
}

}  // namespace hlaunch
