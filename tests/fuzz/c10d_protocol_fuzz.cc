// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The first byte says how the rest is split. Whole and split must give the same requests.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/status_macros.h"
#include "rendezvous/c10d_protocol.h"

namespace hlaunch {
namespace {

// Every request as it was read, then how it ended.
std::vector<std::string> Parse(absl::string_view bytes, size_t piece) {
  C10dParser parser;
  std::vector<std::string> seen;
  while (!bytes.empty()) {
    absl::string_view now = bytes.substr(0, piece);
    bytes.remove_prefix(now.size());
    while (true) {
      auto request = parser.Next(&now);
      if (!request.ok()) {
        seen.push_back(request.status().ToString());
        return seen;
      }
      if (!request->has_value()) break;
      HLAUNCH_CHECK((*request)->values.empty() || !(*request)->keys.empty());
      // Not on the wire of later clients, whose codes SerializeC10dRequest writes.
      seen.push_back((*request)->op == C10dOp::kWatchKey ? (*request)->keys[0]
                                                         : SerializeC10dRequest(**request));
    }
    HLAUNCH_CHECK(now.empty());
  }
  if (parser.awaits_silence()) seen.push_back(parser.Silence().keys[0]);
  return seen;
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HLAUNCH_CHECK(hlaunch::Parse(bytes, size) == hlaunch::Parse(bytes, data[0] % 16 + 1));
  return 0;
}
