// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "comm/call/algorithm.h"
#include "comm/call/hosts.h"
#include "comm/collectives/collective.h"
#include "comm/transport/shared_transport.h"
#include "comm/transport/transport.h"

namespace hlaunch {

// Memory for intermediate data; it is kept from one call to the next.
class Scratch {
 public:
  // The memory is not initialised, and aligned for any type. Valid until the next Get.
  std::span<std::byte> Get(size_t size);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

// Lists with one or two entries for each rank. With few ranks they allocate no memory, which a
// small call would notice.
using OutgoingList = absl::InlinedVector<Outgoing, 8>;
using IncomingList = absl::InlinedVector<Incoming, 8>;
using SourceList = absl::InlinedVector<const std::byte*, 9>;
using SizeList = absl::InlinedVector<size_t, 9>;

// The ranks that take part in one call, numbered from 0, and the messages between them, as an MPI
// communicator. Messages between two ranks arrive in the order of their Starts.
class Communicator {
 public:
  Communicator(SharedTransport::Turn& turn, const Call& call, uint64_t number, Instant deadline,
               Scratch& scratch)
      : turn_(turn),
        call_(call),
        number_(number),
        deadline_(deadline),
        scratch_(scratch),
        rank_(turn->rank()),
        size_(turn->size()) {}

  // Returns the same call among some of the ranks; this rank is one of them. `ranks` must outlive
  // the result, and Among must not be called on the result.
  Communicator Among(const std::vector<Rank>& ranks) const;

  Rank rank() const { return rank_; }
  int size() const { return size_; }
  Rank Next(int steps) const { return (rank_ + steps) % size_; }
  Rank Before(int steps) const { return (rank_ - steps % size_ + size_) % size_; }
  Scratch& scratch() { return scratch_; }

  Outgoing Out(Rank to, std::span<const std::byte> bytes) const {
    return {{Real(to), call_, number_}, bytes};
  }
  Incoming In(Rank from, std::span<std::byte> bytes) const {
    return {{Real(from), call_, number_}, bytes};
  }
  template <typename Direction>
  void Start(Direction* message) {
    turn_->Start(message);
  }
  absl::Status Wait(const Message& message) {
    return message.done ? absl::OkStatus() : turn_.Wait(message, deadline_);
  }
  template <typename Messages>
  absl::Status WaitAll(const Messages& messages) {
    for (const Message& message : messages) {
      if (absl::Status status = Wait(message); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  Rank Real(Rank rank) const { return ranks_ == nullptr ? rank : (*ranks_)[rank]; }

  SharedTransport::Turn& turn_;
  const Call call_;
  const uint64_t number_;
  const Instant deadline_;
  Scratch& scratch_;
  const std::vector<Rank>* ranks_ = nullptr;  // Null: all ranks, under their own numbers.
  Rank rank_;
  int size_;
};

// The input of an algorithm.
struct Task {
  const Collective& call;
  Algorithm algorithm;
  const Hosts& hosts;  // Complete if the algorithm is kTwoLevel.
};

// One function for each verb. `call` has passed Check.
absl::Status RunBarrier(Communicator& comm);
absl::Status RunBroadcast(Communicator& comm, const Task& task);
absl::Status RunAllReduce(Communicator& comm, const Task& task);
absl::Status RunReduce(Communicator& comm, const Task& task);
absl::Status RunAllGather(Communicator& comm, const Task& task);
absl::Status RunGather(Communicator& comm, const Task& task);
absl::Status RunScatter(Communicator& comm, const Task& task);
absl::Status RunReduceScatter(Communicator& comm, const Task& task);
absl::Status RunAllToAll(Communicator& comm, const Task& task);

}  // namespace hlaunch
