// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/grpc_link.h"

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/process/thread_room.h"
#include "launcher/grpc/link/host_link.h"
#include "launcher/grpc/link/join_link.h"
#include "launcher/grpc/link/link_facts.h"
#include "launcher/job/spec/hosting.h"
#include "launcher/job/spec/join_command.h"
#include "launcher/node/first_answer.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/text/endpoint.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/trust/trust.h"

namespace hlaunch {
namespace {

constexpr int kPortsToTry = 100;
// The decision which node hosts waits this long for the resolver. A later answer is used when it
// comes.
constexpr Duration kShortLook = std::chrono::milliseconds(200);
constexpr Duration kLongLook = std::chrono::seconds(10);

// Tells the place where this node listens: to the person, or, for a part of a cluster's job, by a
// file in its folder, from which the node daemon tells the other nodes.
absl::Status TellMeeting(const JobSpec& spec, const Options& options, const Endpoint& here) {
  if (!options.detached_directory.empty()) {
    MeetingPlace place;
    place.endpoint = HostPort(here);
    place.tls = spec.tls ? "on" : "off";
    return KeepMeeting(options.detached_directory, std::move(place), spec.token);
  }
  const JoinCommand join = MakeJoinCommand(options, spec, here);
  const int others = spec.policy.max_nodes - 1;
  // Printed with --quiet too: without this command no node can join.
  LogWarning(absl::StrCat(
      "listening; on ",
      others == 1 ? "the other host" : absl::StrCat("each of the ", others, " other hosts"),
      " run:\n    ", join.command));
  if (!join.hint.empty()) LogWarning(join.hint);
  return absl::OkStatus();
}

// Takes the first free port from `spec.endpoint.port` on and tells the person what to run.
absl::StatusOr<std::unique_ptr<NodeLink>> ListenAndPrint(const JobSpec& spec, const Trust& trust,
                                                         const Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  const auto address = PickReachableAddress(DefaultRouteAddress(), local);
  if (!address) {
    return absl::InvalidArgumentError(
        "this host has no address that others could reach; connect it to a network or name one "
        "with --rdzv-endpoint HOST:PORT");
  }
  absl::StatusOr<ListeningSocket> listening = absl::AlreadyExistsError("");
  for (int i = 0; i < kPortsToTry && absl::IsAlreadyExists(listening.status()); ++i) {
    listening = Listen("", static_cast<uint16_t>(spec.endpoint.port + i));
  }
  if (!listening.ok()) return listening.status();
  HLAUNCH_RETURN_IF_ERROR(TellMeeting(spec, options, {*address, listening->port}));
  return HostLink::Make(spec, trust, DecideHosting(spec, absl::UnavailableError(""), local, ""),
                        std::move(listening).value(), *address);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options) {
  HLAUNCH_RETURN_IF_ERROR(CheckThreadsOfAgent());
  const absl::StatusOr<Trust> usable = Trust::Of(spec.token, spec.certificates, spec.tls);
  if (!usable.ok()) return absl::UnauthenticatedError(usable.status().message());
  const Trust& trust = *usable;
  if (spec.mode == JobMode::kListenAndPrint) return ListenAndPrint(spec, trust, options);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  const auto lookup = Lookup::Start(spec.endpoint.host);
  // If the store shares the port, the decision cannot be taken later. A given node rank decides it.
  const bool now_or_never = spec.mode == JobMode::kStatic && !spec.node.rank.has_value();
  const Resolved found =
      FirstAnswer(*lookup, spec.worker.signals_to_handle, now_or_never ? kLongLook : kShortLook);
  const HostingVerdict verdict = DecideHosting(spec, found, local, HostName());
  LogDebug(verdict.reason);
  if (verdict.role != HostingRole::kHosts) {
    return std::make_unique<JoinLink>(spec, trust, verdict, lookup, false);
  }
  absl::StatusOr<ListeningSocket> listening = Listen(verdict.bind_address, spec.endpoint.port);
  if (listening.ok()) {
    return HostLink::Make(spec, trust, verdict, std::move(listening).value(),
                          OwnReachableAddress(spec, found));
  }
  if (!absl::IsAlreadyExists(listening.status())) return listening.status();
  // Another agent of this host may have been first, or another program has the port. Its answer
  // tells which.
  LogDebug(absl::StrCat(listening.status().message(), "; asking who that is"));
  return std::make_unique<JoinLink>(spec, trust, verdict, lookup, true);
}

}  // namespace hlaunch
