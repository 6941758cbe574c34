// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/link.h"

#include <algorithm>
#include <cstring>

namespace hlaunch {

NewsPacket Pack(const News& news) {
  NewsPacket packet{};
  packet.kind = news.kind;
  packet.rank = news.kind == News::kLeft ? news.sends : news.failure.rank;
  packet.code = static_cast<int32_t>(news.failure.status.code());
  const absl::string_view text = news.failure.status.message();
  packet.length = std::min(text.size(), sizeof packet.text);
  std::copy_n(text.data(), packet.length, packet.text);
  return packet;
}

News Unpack(const NewsPacket& packet) {
  if (packet.kind == News::kLeft) return {News::kLeft, {}, packet.rank != 0};
  if (packet.kind != News::kFailed || packet.length > sizeof packet.text || packet.code <= 0 ||
      packet.code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated)) {
    return {News::kGone};
  }
  return {News::kFailed,
          {absl::Status(static_cast<absl::StatusCode>(packet.code),
                        absl::string_view(packet.text, packet.length)),
           packet.rank}};
}

}  // namespace hlaunch
