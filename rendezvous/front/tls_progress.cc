// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/front/tls_progress.h"

#include <algorithm>

namespace hlaunch {

void TlsProgress::Received(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (skip_ > 0) {
      const size_t skipped = std::min(skip_, bytes.size());
      bytes.remove_prefix(skipped);
      skip_ -= skipped;
      continue;
    }
    const size_t taken = std::min(kHeadBytes - had_, bytes.size());
    std::copy_n(bytes.begin(), taken, head_.begin() + had_);
    bytes.remove_prefix(taken);
    had_ += taken;
    if (had_ < kHeadBytes) return;
    had_ = 0;
    skip_ = size_t{head_[3]} << 8 | head_[4];
    if (head_[0] == kHandshake) answered_ = protected_ = false;
    if (head_[0] == kApplicationData && answered_) protected_ = true;
  }
}

bool TlsProgress::Sends() {
  answered_ = true;
  return protected_;
}

}  // namespace hlaunch
