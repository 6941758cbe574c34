// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What strangers send to gRPC's port, as the guards of its connections read it. Whatever the
// pieces, a client is found to be a flood at the same byte, and its handshake to be over at the
// same one.

#include <cstddef>
#include <cstdint>

#include "proto/base/status_macros.h"
#include "rendezvous/net/port/stream_meter.h"
#include "rendezvous/net/port/tls_progress.h"

namespace hlaunch {
namespace {

// Returns how many bytes the meter takes before it refuses one.
size_t TakenByMeter(absl::string_view bytes, size_t piece) {
  StreamMeter meter{Instant()};
  size_t taken = 0;
  while (taken < bytes.size()) {
    const absl::string_view part = bytes.substr(taken, piece);
    StreamMeter before = meter;
    if (!meter.Received(part, Instant())) {
      if (part.size() == 1) return taken;
      for (size_t i = 0; i < part.size(); ++i) {
        if (!before.Received(part.substr(i, 1), Instant())) return taken + i;
      }
      HLAUNCH_CHECK(false);
    }
    taken += part.size();
  }
  return taken;
}

// The client has sent `hello`, the server its part, and then come `bytes`. Returns whether the
// handshake is over when the server sends again.
bool IsOver(absl::string_view hello, absl::string_view bytes, size_t piece) {
  TlsProgress progress;
  progress.Received(hello);
  progress.Sends();
  while (!bytes.empty()) {
    const absl::string_view part = bytes.substr(0, piece);
    progress.Received(part);
    bytes.remove_prefix(part.size());
  }
  return progress.Sends();
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlaunch;
  if (size < 2) return 0;
  const size_t piece = data[0] % 64 + 1;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  HLAUNCH_CHECK(TakenByMeter(bytes, piece) == TakenByMeter(bytes, bytes.size() + 1));
  const absl::string_view hello = bytes.substr(0, data[1]);
  const absl::string_view rest = bytes.substr(hello.size());
  const bool over = IsOver(hello, rest, piece);
  HLAUNCH_CHECK(over == IsOver(hello, rest, rest.size() + 1));
  if (over) HLAUNCH_CHECK(bytes.find('\x17') != bytes.npos);  // A record of protected data.
  return 0;
}
