// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "comm/call/algorithm.h"
#include "comm/call/hosts.h"
#include "comm/collectives/collective.h"
#include "comm/collectives/communicator.h"
#include "comm/transport/shared_transport.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Returns the instant that lies `time` ahead; Instant::max() if that is too far.
Instant After(Duration time);

// Runs the collectives of one group over its transport. The group makes one call at a time, in the
// order of their numbers; transport() may be used by any thread.
class CollectiveRunner {
 public:
  CollectiveRunner(std::unique_ptr<Transport> transport, AlgorithmChoices choices)
      : transport_(std::move(transport)), choices_(std::move(choices)) {}

  SharedTransport& transport() { return transport_; }

  // Blocks until `call`, which Check has accepted, is over here. Errors: as Transport.
  absl::Status Run(const Collective& call, uint64_t number, Instant deadline);

  // As ProcessGroup::MonitoredBarrier.
  absl::Status MonitoredBarrier(uint64_t number, Duration timeout);

 private:
  absl::Status FindHosts(SharedTransport::Turn& turn, const Call& call, uint64_t number,
                         Instant deadline);

  SharedTransport transport_;
  const AlgorithmChoices choices_;
  // Used by the call that runs.
  Scratch scratch_;
  std::optional<Hosts> hosts_;
};

}  // namespace hlaunch
