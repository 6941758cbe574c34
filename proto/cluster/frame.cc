// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/frame.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kHead = 4;

size_t LengthIn(absl::string_view head) {
  size_t length = 0;
  for (size_t i = 0; i < kHead; ++i) length = length << 8 | static_cast<unsigned char>(head[i]);
  return length;
}

absl::Status CheckLength(size_t length, size_t max_frame) {
  if (length == 0) return absl::InvalidArgumentError("a frame is empty");
  if (length <= max_frame) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a frame of ", length, " bytes; at most ", max_frame, " are taken"));
}

}  // namespace

std::string EncodeFrameOf(absl::string_view json) {
  HLAUNCH_CHECK(json.size() <= kMaxClusterFrame);
  std::string frame;
  frame.reserve(kHead + json.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>(json.size() >> shift & 0xff));
  }
  frame.append(json.data(), json.size());
  return frame;
}

absl::StatusOr<std::vector<std::string>> FrameReader::Take(absl::string_view bytes) {
  bytes_.append(bytes.data(), bytes.size());
  std::vector<std::string> frames;
  absl::string_view rest = bytes_;
  while (rest.size() >= kHead) {
    const size_t length = LengthIn(rest);
    HLAUNCH_RETURN_IF_ERROR(CheckLength(length, max_frame_));
    if (rest.size() - kHead < length) break;
    frames.emplace_back(rest.substr(kHead, length));
    rest.remove_prefix(kHead + length);
  }
  bytes_.erase(0, bytes_.size() - rest.size());
  return frames;
}

}  // namespace hlaunch
