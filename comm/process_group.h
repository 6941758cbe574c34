// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/call/call.h"
#include "comm/call/work.h"
#include "comm/collectives/collective.h"
#include "comm/transport/process_transport.h"
#include "comm/transport/transport.h"
#include "proto/base/clock.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

struct GroupOptions {
  std::string name = "default";
  // How long a call may take; as torch.distributed's.
  Duration timeout = std::chrono::minutes(30);
  // A literal of this host that other hosts reach.
  std::string address = "127.0.0.1";
  bool shared_memory = true;
  // Of large messages inside a host. kIfFaster: as HLAUNCH_COMM_SINGLE_COPY says, else as measured.
  SingleCopy single_copy = SingleCopy::kIfFaster;
  int local_ranks = 1;  // As far as known; how eagerly to spin follows from it.
};

// Ranks that do things together, in the words of torch.distributed: every rank makes the same calls
// of Run and Start in the same order. Sends and receives are matched by rank and tag, in order.
//
// Thread-safe. A call that waits holds up no other: threads take turns at the transport. What Run
// does without others under way happens on the caller's thread; calls of Start go on in the order
// of their making on a thread of the group, which begins with the first of them.
//
// A failure is for the whole group and stays: see Transport for its kinds. Leave the group then,
// and make another under another name.
class ProcessGroup {
 public:
  // Joins the group of `options.name` as `rank`; does not wait for the others. The store is asked
  // where they are when the first message goes there, and must not have seen the name before.
  //
  // Errors:
  //   InvalidArgument - rank, size or address make no sense.
  //   Unavailable, ResourceExhausted - as Store; or no descriptors.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Create(std::shared_ptr<Store> store,
                                                              Rank rank, int size,
                                                              GroupOptions options = {});
  // Over ways that are there already; such a group can make no others.
  static std::unique_ptr<ProcessGroup> Over(std::unique_ptr<Transport> transport,
                                            GroupOptions options = {});

  virtual ~ProcessGroup() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual const GroupOptions& options() const = 0;

  // Makes a group of some ranks of this one, where they are numbered in the order given. Every rank
  // of this group calls it with the same list; null for those that are not in it.
  //
  // Errors: as Create; InvalidArgument - no rank of this group, or one twice.
  virtual absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(std::span<const Rank> ranks) = 0;

  // Blocks until `call` is over here. `timeout` instead of the group's.
  //
  // Errors: as Check, which leave the group as it was; as Transport.
  virtual absl::Status Run(Collective call, std::optional<Duration> timeout = std::nullopt) = 0;
  virtual WorkPtr Start(Collective call, std::optional<Duration> timeout = std::nullopt) = 0;

  // A barrier by which rank 0 finds out who does not come.
  //
  // Errors:
  //   DeadlineExceeded - at rank 0 with the names of all that did not come, at others likewise.
  virtual absl::Status MonitoredBarrier(Duration timeout) = 0;

  // One rank to another. `tag` is any number; the types must be the same at both ends. A small
  // message may be sent before it is received. kAnyRank receives from whoever is first.
  virtual WorkPtr StartSend(DataType type, std::span<const std::byte> from, Rank to,
                            uint64_t tag = 0) = 0;
  virtual WorkPtr StartRecv(DataType type, std::span<std::byte> into, Rank from,
                            uint64_t tag = 0) = 0;
  absl::Status Send(DataType type, std::span<const std::byte> from, Rank to, uint64_t tag = 0) {
    return StartSend(type, from, to, tag)->Wait();
  }
  absl::StatusOr<Rank> Recv(DataType type, std::span<std::byte> into, Rank from, uint64_t tag = 0);

  // What ended the group, as far as this rank knows; OK while it works.
  virtual absl::Status failure() const = 0;

  // Makes all that waits return Cancelled with `why`, here and at the other ranks.
  virtual void Abort(const std::string& why) = 0;
};

}  // namespace hlaunch
