// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/ask/call_rendezvous.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "rendezvous/grpc/grpc_transport.h"
#include "rendezvous/listening/route.h"

namespace hlaunch {
namespace {

bool IsAnswer(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
}

absl::Status CallAt(const std::string& address, const RendezvousEndpoint& endpoint, Duration limit,
                    const RendezvousCall& call) {
  grpc::ClientContext context;
  // gRPC takes deadlines on the wall clock.
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(limit));
  const Line line(address, endpoint.port, endpoint.trust, endpoint.host);
  return line.StatusOfCall(call(*v1::Rendezvous::NewStub(line.channel()), &context));
}

}  // namespace

absl::Status CallRendezvous(const RendezvousEndpoint& endpoint, Instant deadline, Duration least,
                            absl::string_view knows, const RendezvousCall& call) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, ResolveHost(endpoint.host));
  const std::string where = HostPort(endpoint.host, endpoint.port);
  absl::Status status;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Duration left = deadline - MonotonicClock().Now();
    const Duration share = left / static_cast<int>(addresses.size() - i);
    status = CallAt(addresses[i], endpoint, std::max(share, least), call);
    if (IsAnswer(status)) break;
  }
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(absl::StrCat("what answers at ", where, " knows no ",
                                                      knows, "; is it hlaunch's rendezvous?"));
  }
  if (IsAnswer(status)) return status;
  return absl::UnavailableError(
      absl::StrCat("no rendezvous answers at ", where, ": ", status.message()));
}

}  // namespace hlaunch
