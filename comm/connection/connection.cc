// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/connection.h"

#include <algorithm>
#include <cstring>

namespace hlaunch {

NoticePacket Pack(const Notice& notice) {
  NoticePacket packet{};
  packet.kind = notice.kind;
  packet.rank = notice.kind == Notice::kLeft ? notice.sends : notice.failure.rank;
  packet.code = static_cast<int32_t>(notice.failure.status.code());
  const absl::string_view text = notice.failure.status.message();
  packet.length = std::min(text.size(), sizeof packet.text);
  std::copy_n(text.data(), packet.length, packet.text);
  return packet;
}

Notice Unpack(const NoticePacket& packet) {
  const bool says = packet.length <= sizeof packet.text && packet.code > 0 &&
                    packet.code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  if (packet.kind == Notice::kLeft) {
    Notice left{Notice::kLeft, {}, packet.rank != 0};
    if (says) left.failure.status = absl::UnknownError({packet.text, packet.length});
    return left;
  }
  if (packet.kind == Notice::kAsks) return {Notice::kAsks};
  if (packet.kind != Notice::kFailed || !says) return {Notice::kDisconnected};
  return {Notice::kFailed,
          {absl::Status(static_cast<absl::StatusCode>(packet.code),
                        absl::string_view(packet.text, packet.length)),
           packet.rank}};
}

}  // namespace hlaunch
