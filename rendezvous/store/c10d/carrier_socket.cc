// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/carrier_socket.h"

#include <cerrno>

#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status CarrierSocket::Seal(SealedStream::Side side, absl::string_view key) {
  HLAUNCH_ASSIGN_OR_RETURN(sealed_, SealedStream::Make(side, key));
  if (side == SealedStream::Side::kServer) return absl::OkStatus();
  return Unseal("", [](absl::string_view) { return absl::OkStatus(); });
}

bool CarrierSocket::SendFrames() {
  if (frames_.size() > 0) {
    if (!sealed_->Put(frames_.text(), &out().text()).ok()) {
      errno = EPROTO;
      return false;
    }
    frames_.Clear();
    out().Recount();
  }
  return Send();
}

absl::Status CarrierSocket::Unseal(absl::string_view bytes,
                                   absl::FunctionRef<absl::Status(absl::string_view piece)> take) {
  if (sealed_ == nullptr) return take(bytes);
  const absl::Status taken = sealed_->Take(bytes, &out().text(), take);
  out().Recount();
  return taken;
}

}  // namespace hlaunch
