// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The first byte chooses the pieces of the rest, the older clients' dialect and the limits. The
// whole and the pieces must give the same requests within the limits. A request written in today's
// dialect must be read back as the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "proto/base/status_macros.h"
#include "rendezvous/store/c10d/c10d_protocol.h"

namespace hlaunch {
namespace {

// Every request as it was read, then the end.
std::vector<std::string> Parse(absl::string_view bytes, size_t piece, C10dDialect older,
                               const StoreLimits& limits) {
  C10dParser parser(older, limits);
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
      HLAUNCH_CHECK((*request)->keys.size() <= std::max<size_t>(limits.list_keys, 1));
      for (const auto& key : (*request)->keys) HLAUNCH_CHECK(limits.CheckKey(key.size()).ok());
      for (const auto& value : (*request)->values) {
        HLAUNCH_CHECK(limits.CheckValue(value.size()).ok());
      }
      // Later clients, whose codes SerializeC10dRequest writes, do not have this request.
      seen.push_back((*request)->op == C10dOp::kWatchKey ? (*request)->keys[0]
                                                         : SerializeC10dRequest(**request));
    }
    HLAUNCH_CHECK(now.empty());
  }
  if (parser.awaits_silence()) seen.push_back(parser.Silence().keys[0]);
  return seen;
}

// Parses requests that SerializeC10dRequest has written.
std::vector<std::string> ParseAgain(const std::vector<std::string>& requests,
                                    const StoreLimits& limits) {
  std::string bytes(1, '\0');
  PutUint32(&bytes, kC10dMagic);
  for (const std::string& request : requests) bytes += request;
  return Parse(bytes, bytes.size(), C10dDialect::kUnknown, limits);
}

constexpr C10dDialect kOlder[] = {C10dDialect::kUnknown, C10dDialect::kTorch1,
                                  C10dDialect::kTorch21, C10dDialect::kTorch22};
const StoreLimits kLimits[] = {{},
                               {.key_bytes = 1, .value_bytes = 2, .list_keys = 3},
                               {.key_bytes = 64 << 20, .value_bytes = size_t{1} << 40},
                               {.key_bytes = 0, .value_bytes = 0, .list_keys = 0}};

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const hlaunch::C10dDialect older = hlaunch::kOlder[data[0] / 16 % 4];
  const hlaunch::StoreLimits& limits = hlaunch::kLimits[data[0] / 64];
  const std::vector<std::string> whole = hlaunch::Parse(bytes, size, older, limits);
  HLAUNCH_CHECK(whole == hlaunch::Parse(bytes, data[0] % 16 + 1, older, limits));
  if (bytes.substr(0, 5) == absl::string_view("\0\xce\xf7\x85\x3c", 5)) {
    std::vector<std::string> requests = whole;
    // Drops the last entry if it is an error.
    const bool failed = !requests.empty() && absl::ascii_isupper(requests.back()[0]);
    if (failed) requests.pop_back();
    HLAUNCH_CHECK(hlaunch::ParseAgain(requests, limits) == requests);
  }
  return 0;
}
