// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Finds the heads of frames, each of kBytes, in bytes that come in pieces. A value.
template <size_t kBytes>
class FrameHeads {
 public:
  using Head = std::array<uint8_t, kBytes>;

  // `before`: that many bytes come before the first head.
  explicit FrameHeads(size_t before = 0) : skip_(before) {}

  // Calls `found` for each head that ends in `bytes`. It returns how many bytes of the frame
  // follow.
  template <typename Found>
  void Read(absl::string_view bytes, Found found) {
    while (!bytes.empty()) {
      const size_t skipped = std::min(skip_, bytes.size());
      bytes.remove_prefix(skipped);
      skip_ -= skipped;
      const size_t taken = std::min(kBytes - had_, bytes.size());
      std::copy_n(bytes.begin(), taken, head_.begin() + had_);
      bytes.remove_prefix(taken);
      had_ += taken;
      if (had_ < kBytes) return;
      had_ = 0;
      skip_ = found(head_);
    }
  }

 private:
  Head head_{};
  size_t had_ = 0;  // Bytes of it.
  size_t skip_;     // Bytes to the next head.
};

}  // namespace hlaunch
