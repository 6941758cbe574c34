// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/listening/lookup.h"
#include "rendezvous/trust/trust.h"
#include "rendezvous/witness/group.h"

namespace hlaunch {

// Where a rendezvous is and what it must be told.
struct RendezvousEndpoint {
  std::string host;  // A name or a literal without brackets.
  uint16_t port = 0;
  Trust trust;
  // Hosts and ports of services beside it, of which one leads; tried in turn.
  std::vector<std::pair<std::string, uint16_t>> others = {};
};

// A node's end of the rendezvous over gRPC.
//
// Until the first answer it tries until the join time-out, since the rendezvous' host and its
// name may come later than this node; after a second it says whom it waits for. Afterwards it
// tries until the loss limit, counted from when it sent the last word that was answered. Time in
// which this process was not run is forgiven down to one lease, within half the margin. In between
// it says a sign of life every half lease, and takes a connection that is silent for a whole one
// for broken.
//
// Thread-safe; the listener is called from its thread, "rdzv-client". Destruction delivers a
// last kLeft or kFinished first, for 2 s at most.
class GrpcRendezvousClient final : public RendezvousClient {
 public:
  struct Options {
    RendezvousEndpoint endpoint;
    Duration join_timeout = std::chrono::seconds(600);
    // Until a rendezvous has answered at all, be it with "not yet"; unset: join_timeout.
    std::optional<Duration> answer_timeout = std::nullopt;
    // The first question for the endpoint's name, if it was asked already.
    std::shared_ptr<Lookup> lookup = nullptr;
    // Hears every answer of the resolver before it is used. May be empty.
    std::function<void(const Lookup::Result& found)> on_lookup = nullptr;
    // An address that leads to the rendezvous too, tried after the endpoint's own; unset while
    // there is none. Asked at every turn, as on_lookup from the client's thread. May be empty.
    std::function<std::optional<std::string>()> detour = nullptr;
    // The conversation goes on that this node had in another way, with a rendezvous that is one of
    // `witnesses` now.
    struct TakenUp {
      Lease lease;
      Instant heard;  // The last word of this node that was taken was of then.
      WitnessMembers witnesses;
    };
    std::optional<TakenUp> taken_up = std::nullopt;
    // Hears who keeps the job's record, and what holds for the job, whenever the rendezvous says so
    // anew; from the client's thread. They are where the rendezvous may be, tried before the
    // endpoint. May be empty.
    std::function<void(const JobPolicy& policy, const WitnessMembers& witnesses)> on_witnesses =
        nullptr;
  };

  explicit GrpcRendezvousClient(Options options);
  ~GrpcRendezvousClient() override;

  // `listener` must outlive the client. Where info.address is empty, it is this host's address
  // on its route to the rendezvous.
  void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) override;
  void Send(const NodeUpdate& update) override;
  void Answer(NodeAnswer answer) override;
  Allowance AllowanceNow(Instant now) const override;

  // Whether a rendezvous has ever answered.
  bool contacted() const { return contacted_; }

 private:
  class Conversation;
  const Options options_;
  std::atomic<bool> contacted_ = false;
  std::unique_ptr<Conversation> conversation_;
};

// Tells the rendezvous that this incarnation's agent is dead and that none of its workers lives.
//
// Errors:
//   InvalidArgument - the endpoint's name cannot be right.
//   PermissionDenied - the rendezvous has another token.
//   Aborted - that incarnation is not a member any more.
//   Unavailable, DeadlineExceeded - the rendezvous was not reached before `deadline`.
absl::Status ReportNodeDeath(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                             absl::string_view node_id, Incarnation incarnation,
                             absl::string_view reason, Instant deadline);

}  // namespace hlaunch
