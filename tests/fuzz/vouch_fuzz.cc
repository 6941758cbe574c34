// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What agents and the master store say to each other about connections, and the frames in which
// they say it. Bytes mean the same in whatever pieces they come, no piece leads beyond its end, and
// what was read means the same when it is sent again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/status_macros.h"
#include "rendezvous/store/access/vouch_messages.h"
#include "rendezvous/store/c10d/store_streams.h"

namespace hlaunch {
namespace {

// What the messages are when they are sent again, and whether all bytes were messages.
std::pair<std::string, bool> ReadVouching(absl::string_view bytes, size_t piece) {
  VouchReader reader;
  std::string again;
  while (!bytes.empty()) {
    const absl::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    const auto messages = reader.Take(part);
    if (!messages.ok()) return {again, false};
    for (const VouchMessage& message : *messages) PutVouchMessage(&again, message);
  }
  return {again, true};
}

// All that the frames bring, as text.
std::string ReadFrames(absl::string_view bytes, bool greeted, size_t piece) {
  StreamFrameReader reader(greeted);
  std::string heard;
  uint32_t open = 0;
  size_t taken = 0;
  const size_t all = bytes.size();
  while (!bytes.empty()) {
    const absl::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    const absl::Status status = reader.Take(part, [&](uint32_t stream, absl::string_view content) {
      HLAUNCH_CHECK(content.empty() ||
                    (content.data() >= part.data() &&
                     content.data() + content.size() <= part.data() + part.size()));
      if (stream != open || content.empty()) heard += "#" + std::to_string(stream) + " ";
      if (content.empty()) heard += "end ";
      open = stream;
      heard.append(content.data(), content.size());
      taken += content.size();
    });
    if (!status.ok()) return heard + "#refused";
  }
  HLAUNCH_CHECK(taken <= all);
  return heard;
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlaunch;
  if (size < 1) return 0;
  const size_t piece = data[0] % 32 + 1;
  const bool greeted = data[0] >= 128;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto [again, whole] = ReadVouching(bytes, bytes.size() + 1);
  if (whole) {
    HLAUNCH_CHECK(bytes.substr(0, again.size()) == again);
    HLAUNCH_CHECK(ReadVouching(bytes, piece) == std::make_pair(again, true));
  }
  HLAUNCH_CHECK(ReadFrames(bytes, greeted, piece) == ReadFrames(bytes, greeted, bytes.size() + 1));
  return 0;
}
