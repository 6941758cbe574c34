// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/store_streams.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "rendezvous/store/c10d/c10d_protocol.h"

namespace hlaunch {

void PutFrame(std::string* out, uint32_t stream, absl::string_view bytes) {
  PutUint32(out, stream);
  PutUint32(out, static_cast<uint32_t>(bytes.size()));
  out->append(bytes.data(), bytes.size());
}

absl::Status StreamFrameReader::Take(
    absl::string_view bytes,
    absl::FunctionRef<void(uint32_t stream, absl::string_view piece)> take) {
  const absl::string_view greeting = greeting_left_.substr(0, bytes.size());
  if (!absl::StartsWith(bytes, greeting)) {
    return absl::InvalidArgumentError("neither a c10d store client nor a proxy of hlaunch");
  }
  greeting_left_.remove_prefix(greeting.size());
  bytes.remove_prefix(greeting.size());
  while (!bytes.empty()) {
    if (left_ > 0) {
      const absl::string_view piece = bytes.substr(0, left_);
      bytes.remove_prefix(piece.size());
      left_ -= piece.size();
      take(stream_, piece);
      continue;
    }
    const size_t taken = std::min(head_.size() - head_size_, bytes.size());
    std::memcpy(head_.data() + head_size_, bytes.data(), taken);
    bytes.remove_prefix(taken);
    head_size_ += taken;
    if (head_size_ < head_.size()) break;
    head_size_ = 0;
    uint32_t length = 0;
    std::memcpy(&stream_, head_.data(), sizeof(stream_));
    std::memcpy(&length, head_.data() + sizeof(stream_), sizeof(length));
    left_ = length;
    if (left_ == 0) take(stream_, "");
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
