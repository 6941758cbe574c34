// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/tls_progress.h"

#include <cstddef>

namespace hlaunch {

void TlsProgress::Received(absl::string_view bytes) {
  heads_.Read(bytes, [this](const auto& head) {
    if (head[0] == kHandshake) answered_ = protected_ = false;
    if (head[0] == kApplicationData && answered_) protected_ = true;
    return size_t{head[3]} << 8 | head[4];
  });
}

bool TlsProgress::Sends() {
  answered_ = true;
  return protected_;
}

}  // namespace hlaunch
