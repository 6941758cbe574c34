// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any bytes at the metrics port, in any pieces, give a request or a refusal, never a crash. The
// answer is one whole response.

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/watch/observe/http_request.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

void CheckRequest(const HttpQuestion& request) {
  HLAUNCH_CHECK(request.status == 0 || (request.status >= 200 && request.status < 600));
  if (request.status == 200) HLAUNCH_CHECK(absl::StartsWith(request.path, "/"));
  if (request.status != 200) HLAUNCH_CHECK(request.path.empty());
  HLAUNCH_CHECK(request.path.find_first_of("? \n") == std::string::npos);
}

// The server reads from the start again with each piece. Bytes after a whole head must not change
// its decision.
void CheckPieces(absl::string_view bytes) {
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const HttpQuestion part = ReadHttpRequest(bytes.substr(0, size));
    CheckRequest(part);
    if (part.status != 200) continue;
    const HttpQuestion whole = ReadHttpRequest(bytes);
    HLAUNCH_CHECK(whole.status == 200 && whole.path == part.path && whole.head == part.head);
    return;
  }
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const hlaunch::HttpQuestion request = hlaunch::ReadHttpRequest(bytes);
  hlaunch::CheckRequest(request);
  if (size < 512) hlaunch::CheckPieces(bytes);
  const int status = request.status == 0 ? 400 : request.status;
  const std::string response = hlaunch::HttpReply(status, "text/plain", bytes, request.head);
  HLAUNCH_CHECK(absl::StartsWith(response, "HTTP/1.1 "));
  HLAUNCH_CHECK(absl::EndsWith(response, request.head ? absl::string_view("\r\n\r\n") : bytes));
  return 0;
}
