// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/store/access/store_access.h"

// What the master store and an agent say to each other about the connections that come from the
// agent's host. They say it in the stream kVouchStream of the agent's sealed connection, see
// store_streams.h.

namespace hlaunch {

inline constexpr uint32_t kVouchStream = 0;  // No worker's connection has this number.

// The agent's first message: where its own connection comes from, as its host sees it, and the
// other addresses of its host.
struct VouchGreeting {
  StoreAddress address{};
  uint16_t port = 0;
  std::vector<StoreAddress> others;  // At most kMaxVouchAddresses.
};
inline constexpr size_t kMaxVouchAddresses = 255;

// The store asks: whose is the connection to the store from this address and port?
struct VouchQuestion {
  uint64_t number = 0;
  StoreAddress address{};
  uint16_t port = 0;
};

enum class Vouch : uint8_t {
  kOwn = 1,     // It is the job's user's, or root's.
  kOther = 2,   // It is another user's.
  kNobody = 3,  // No process of the host has it, at least not in the agent's network namespace.
  kUntold = 4,  // The host's kernel does not tell.
};

struct VouchAnswer {
  uint64_t number = 0;  // The question's.
  Vouch vouch = Vouch::kNobody;
  uint32_t user = 0;  // Set for kOther.
};

using VouchMessage = std::variant<VouchGreeting, VouchQuestion, VouchAnswer>;

void PutVouchMessage(std::string* out, const VouchMessage& message);

// Parses messages as their bytes come. Belongs to one thread.
class VouchReader {
 public:
  // Takes the next `bytes` and returns the messages that are complete.
  //
  // Errors:
  //   InvalidArgument - these are no such messages; the reader cannot be used after that.
  absl::StatusOr<std::vector<VouchMessage>> Take(absl::string_view bytes);

 private:
  std::string begun_;  // An incomplete message.
};

}  // namespace hlaunch
