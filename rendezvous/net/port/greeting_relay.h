// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/net/trust/trust.h"

namespace hlaunch {

// A client's connection to a rendezvous that demands a greeting. gRPC 1.51 can send nothing before
// TLS or HTTP/2, so it connects to this relay, within the process. The relay connects to
// the rendezvous, greets, and from then on carries the bytes in both directions. A failure ends
// gRPC's connection, and gRPC tries again as with any other connection.
//
// Thread-safe. Owns a thread, "hl-greeting", which the destructor joins, and all connections.
class GreetingRelay {
 public:
  // Relays to a literal address. Requires: trust.greets().
  //
  // Errors:
  //   ResourceExhausted - out of descriptors or threads.
  static absl::StatusOr<std::unique_ptr<GreetingRelay>> Start(const Trust& trust,
                                                              std::string address, uint16_t port);
  ~GreetingRelay();

  // Returns where gRPC must connect: the name of an abstract Unix socket (unix(7)). Only this
  // process is served there.
  const std::string& name() const;

  // Returns why there is no connection, as of the last attempt that ended.
  //
  // Errors:
  //   PermissionDenied - the rendezvous refuses, or does not hold the token; the message says what
  //     differs, and what to do about it.
  //   Unavailable - any other reason.
  absl::Status trouble() const;

 private:
  class Carrying;
  explicit GreetingRelay(std::unique_ptr<Carrying> carrying);
  std::unique_ptr<Carrying> carrying_;
};

}  // namespace hlaunch
