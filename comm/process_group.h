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
#include "comm/connection/single_copy.h"
#include "comm/transport/transport.h"
#include "proto/base/clock.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

struct GroupOptions {
  std::string name = "default";
  // How long a call may take; the default is torch.distributed's.
  Duration timeout = std::chrono::minutes(30);
  // An IP literal of this host that other hosts can reach.
  std::string address = "127.0.0.1";
  bool shared_memory = true;
  // For large messages inside a host. kUnlessSlow: as HLAUNCH_COMM_SINGLE_COPY says, else as
  // measured.
  SingleCopy single_copy = SingleCopy::kUnlessSlow;
  int local_ranks = 1;  // The ranks of this host as far as known; decides how long a rank spins.
  // A secret of kSecretSize bytes that only the ranks of the round have, by which they recognize
  // each other. If empty, every process that can read the store is trusted.
  std::string secret = {};
  Round round = 0;        // Ranks of another round are refused; 0: not known.
  bool recorded = false;  // Whoever may read this process can see its calls: see CallRecord.
};

// Ranks that communicate, with the verbs of torch.distributed: every rank makes the same calls of
// Run and Start in the same order. Sends and receives are matched by rank and tag, in order.
//
// Thread-safe. A call that waits does not delay other calls: threads take turns at the transport.
// Run works on the caller's thread if no other collective is under way. Calls of Start run in their
// order on a thread of the group, which begins with the first of them.
//
// A failure ends the whole group for good; Transport lists the kinds. The program must then leave
// the group and make another one under another name.
class ProcessGroup {
 public:
  // Joins the group of `options.name` as `rank`; does not wait for the others. The first message to
  // a rank looks up its address in the store. No group of the same name may have used the store.
  //
  // Errors:
  //   InvalidArgument - rank, size or address are wrong.
  //   Unavailable, ResourceExhausted - as Store; or this process is out of descriptors.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Create(std::shared_ptr<Store> store,
                                                              Rank rank, int size,
                                                              GroupOptions options = {});
  // Uses a transport that exists already; NewGroup cannot make groups of such a group.
  static std::unique_ptr<ProcessGroup> Over(std::unique_ptr<Transport> transport,
                                            GroupOptions options = {});

  virtual ~ProcessGroup() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual const GroupOptions& options() const = 0;

  // Makes a group of some ranks of this one; they are numbered in the order of the list. Every rank
  // of this group must call it with the same list. Returns null at a rank that is not in the list.
  //
  // Errors: as Create; InvalidArgument - the list has a rank twice, or one that does not exist.
  virtual absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(std::span<const Rank> ranks) = 0;

  // Blocks until `call` is over at this rank. `timeout` replaces the group's.
  //
  // Errors: as Check, which leave the group as it was; as Transport.
  virtual absl::Status Run(Collective call, std::optional<Duration> timeout = std::nullopt) = 0;
  // Begins `call` and returns at once; Work::Wait returns the errors of Run.
  virtual WorkPtr Start(Collective call, std::optional<Duration> timeout = std::nullopt) = 0;

  // A barrier in which rank 0 finds out which ranks do not come.
  //
  // Errors:
  //   DeadlineExceeded - the message names all ranks that did not come; other ranks get it, too.
  virtual absl::Status MonitoredBarrier(Duration timeout) = 0;

  // Sends from this rank to `to`, or receives from `from`; kAnyRank receives from the first rank
  // that sends. `tag` is any number; the types must be the same at both ends. A small message may
  // be sent before it is received. A message to this rank itself is copied; it is received by this
  // rank's number, not by kAnyRank, unless there is no other rank.
  virtual WorkPtr StartSend(DataType type, std::span<const std::byte> from, Rank to,
                            uint64_t tag = 0) = 0;
  virtual WorkPtr StartRecv(DataType type, std::span<std::byte> into, Rank from,
                            uint64_t tag = 0) = 0;
  absl::Status Send(DataType type, std::span<const std::byte> from, Rank to, uint64_t tag = 0) {
    return StartSend(type, from, to, tag)->Wait();
  }
  // Returns the rank that sent the message.
  absl::StatusOr<Rank> Recv(DataType type, std::span<std::byte> into, Rank from, uint64_t tag = 0);

  // Returns the error that ended the group, as far as this rank knows; OK while the group works.
  virtual absl::Status failure() const = 0;

  // Makes all calls that wait return Cancelled with `why`, here and at the other ranks.
  virtual void Abort(const std::string& why) = 0;

  // Sets what the ranks that still wait for this one are told when it leaves, such as the exception
  // that ends it.
  virtual void SayGoodbye(const std::string& why) = 0;
};

}  // namespace hlaunch
