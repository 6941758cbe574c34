// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/query/call_rendezvous.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/rpc/grpc_transport.h"

namespace hlaunch {
namespace {

// An address has at least this long to take a connection, and no longer than it has to answer.
constexpr Duration kToReach = std::chrono::seconds(3);

bool IsAnswer(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
}

// Where a rendezvous may be: an address, and its port and host.
struct Target {
  std::string address;
  uint16_t port = 0;
  std::string host;
};

// Leaves out hosts that have no address now, unless none has one.
absl::StatusOr<std::vector<Target>> TargetsOf(const RendezvousEndpoint& endpoint) {
  std::vector<std::pair<std::string, uint16_t>> places = endpoint.others;
  places.insert(places.begin(), {endpoint.host, endpoint.port});
  std::vector<Target> targets;
  absl::Status trouble;
  for (const auto& [host, port] : places) {
    const auto found = ResolveHost(host);
    if (!found.ok()) {
      trouble = found.status();
      continue;
    }
    for (const std::string& address : *found) targets.push_back({address, port, host});
  }
  if (targets.empty()) return trouble;
  return targets;
}

std::string WordsOf(const RendezvousEndpoint& endpoint) {
  std::string words = HostPort(endpoint.host, endpoint.port);
  for (const auto& [host, port] : endpoint.others) {
    absl::StrAppend(&words, ", ", HostPort(host, port));
  }
  return words;
}

// gRPC takes deadlines on the wall clock.
std::chrono::system_clock::time_point WallAfter(Duration time) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(time);
}

// Returns whether there is a connection. Waits until `until` for it, or until it has failed.
bool IsReached(grpc::Channel& channel, std::chrono::system_clock::time_point until) {
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return true;
    const bool failed = state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN;
    if (failed || !channel.WaitForStateChange(state, until)) return false;
  }
}

// The target has `share` to be reached and to answer; if it is reached, at least `least` to answer.
absl::Status CallAt(const Target& target, const Trust& trust, Duration share, Duration least,
                    const RendezvousCall& call) {
  const auto until = WallAfter(share);
  const Line line(target.address, target.port, trust, target.host);
  const bool reached = IsReached(*line.channel(), until);
  grpc::ClientContext context;
  context.set_deadline(reached ? std::max(until, WallAfter(least)) : until);
  return line.StatusOfCall(call(*v1::Rendezvous::NewStub(line.channel()), &context));
}

}  // namespace

absl::Status CallRendezvous(const RendezvousEndpoint& endpoint, Instant deadline, Duration least,
                            absl::string_view knows, const RendezvousCall& call) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(endpoint));
  const std::string where = WordsOf(endpoint);
  absl::Status status;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Duration left = deadline - MonotonicClock().Now();
    const Duration share = left / static_cast<int>(targets.size() - i);
    status =
        CallAt(targets[i], endpoint.trust, std::max(share, std::min(least, kToReach)), least, call);
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
