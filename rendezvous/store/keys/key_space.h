// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/store/keys/linear_hash_map.h"

namespace hlaunch {

// The limits of one key, value and list. They are those of PyTorch's own libuv store
// (TCPStoreLibUvBackend.cpp), so whatever works there works here.
inline constexpr size_t kMaxKeyBytes = 8 << 10;
inline constexpr size_t kMaxValueBytes = 8 << 20;
inline constexpr size_t kMaxListKeys = 131'072;
// The limit of the memory that a store takes for all keys, values, queues and waits together.
// PyTorch has no such limit, but a script that loops must not take the host's memory.
inline constexpr size_t kMaxStoreBytes = size_t{1} << 30;

// The limits of one store. A value.
struct StoreLimits {
  size_t key_bytes = kMaxKeyBytes;
  size_t value_bytes = kMaxValueBytes;
  size_t list_keys = kMaxListKeys;
  size_t total_bytes = kMaxStoreBytes;
  bool by_option = false;  // hlaunch's --store-max-… can raise them, and errors say so.

  bool operator==(const StoreLimits&) const = default;

  // Errors: ResourceExhausted - over the limit; the message names both numbers.
  absl::Status CheckKey(size_t bytes) const;
  absl::Status CheckValue(size_t bytes) const;
  absl::Status CheckList(size_t keys) const;
  absl::Status CheckTotal(size_t bytes) const;
};

// Returns the number that PyTorch's store reads from `value` when something is added to it: the
// number at its beginning, as std::stoll reads it. Returns nothing if there is no number there, or
// one over 64 bits.
std::optional<int64_t> ParseCounter(const std::string& value);

// The data of a c10d store: keys, queues, and the clients that wait. Belongs to one thread.
//
// Nothing blocks, and there are no callbacks: a waiter that was armed appears in TakeReady() once
// what it waits for has come. Setting a key wakes all clients that wait for it.
//
// Every method that stores something, or makes a client wait, also returns
//   ResourceExhausted - key, value or the whole store is over its limit; nothing has changed.
class KeySpace {
 public:
  using WaiterId = uint64_t;  // The caller's number of a client, which has one wait at a time.

  explicit KeySpace(const StoreLimits& limits = {}) : limits_(limits) {}

  const StoreLimits& limits() const { return limits_; }

  absl::Status Set(absl::string_view key, std::string value);

  // Null if there is no such key. Valid until the next change.
  const std::string* Find(absl::string_view key) const;

  // Returns the sum, which wraps around. Errors:
  //   FailedPrecondition - the value does not begin with a number.
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta);

  // Returns what `key` holds afterwards; `expected` if it is absent and was not set.
  absl::StatusOr<std::string> CompareAndSet(absl::string_view key, absl::string_view expected,
                                            absl::string_view desired);

  absl::Status Append(absl::string_view key, absl::string_view data);

  bool Delete(absl::string_view key);  // Returns whether it existed. Queues are left alone.

  // Returns whether each of `keys` is a key, or a queue that is not empty.
  bool Check(const std::vector<std::string>& keys) const;

  size_t size() const { return values_.size(); }  // Keys only.
  // The memory that keys, values, queues and waits take, with the allocator's part.
  size_t bytes() const { return bytes_; }
  std::vector<std::string> Keys() const;  // In no order; without queues.
  // The same without a copy. `each` must not change keys.
  template <typename Each>
  void ForEachKey(const Each& each) const {
    for (const auto& entry : values_) each(entry.key());
  }

  // Grows with each key that is created or deleted. While it stays the same, iterators are valid.
  uint64_t shape() const { return shape_; }
  using Iterator = LinearHashMap<std::string>::Iterator;
  Iterator begin() const { return values_.begin(); }
  Iterator end() const { return values_.end(); }

  // Wakes the oldest waiter. If that one cancels instead of popping, the next is woken.
  absl::Status QueuePush(absl::string_view queue, std::string data);

  struct Popped {
    int64_t length_before = 0;  // 0: there was nothing to pop.
    std::string value;
  };
  Popped QueuePop(WaiterId who, absl::string_view queue);
  int64_t QueueLength(absl::string_view queue) const;

  // Returns true if all of `keys` exist. Else arms `who`, which ends its former wait.
  absl::StatusOr<bool> Wait(WaiterId who, const std::vector<std::string>& keys);

  // Counts an arrival in `key`, as decimal text. Returns true once `world_size` have arrived, which
  // makes the earlier waiters ready. Else arms `who`. The counter stays, so a used barrier stays
  // open.
  //
  // Errors:
  //   FailedPrecondition - as Add.
  absl::StatusOr<bool> Barrier(WaiterId who, absl::string_view key, int64_t world_size);

  // Ends the wait of `who`, which is not in TakeReady() until it waits again.
  void CancelWait(WaiterId who);

  // Returns the waiters that became ready since the last call, in that order.
  std::vector<WaiterId> TakeReady();

 private:
  struct Waiting;
  struct Line;
  using Lines = LinearHashMap<Line>;
  using Queue = std::list<std::string>;

  // A waiter's place in the line for a key, which is a ring through all places and the line itself.
  // Whoever waits for a thousand keys has a thousand places, so a place is small.
  struct Place {
    bool alone() const { return after == this; }
    Place* before = this;
    Place* after = this;
    Waiting* waiting = nullptr;
  };
  // The waiters for a key: the oldest comes after it.
  struct Line : Place {
    Lines::Entry* entry = nullptr;  // Where it is.
  };
  struct Waiting {
    WaiterId who = 0;
    bool at_barrier = false;    // It stands in lines of at_barriers_, else of for_keys_.
    size_t missing = 0;         // The lines that have not served it yet.
    std::vector<Place> places;  // One for each line; alone if that has served it.
  };

  static size_t WaitingBytes(size_t places);
  static void Unlink(Place& place);
  bool Exists(absl::string_view key) const;
  absl::Status Put(absl::string_view key, std::string value);
  absl::Status CheckRoomToWait(const std::vector<absl::string_view>& keys) const;
  void Arm(WaiterId who, bool at_barrier, const std::vector<absl::string_view>& keys);
  void Disarm(WaiterId who);
  bool Serve(Place& place);
  Line& LineFor(Lines& lines, absl::string_view key);
  void EndLine(Lines& lines, Line& line);
  void EndWait(std::map<WaiterId, Waiting>::iterator waiting);
  void WakeAll(Lines& lines, absl::string_view key);
  void WakeOneForQueue(absl::string_view queue);
  void Promise(WaiterId who, absl::string_view queue);
  std::optional<std::string> TakePromise(WaiterId who);

  StoreLimits limits_;
  uint64_t shape_ = 0;
  size_t bytes_ = 0;
  LinearHashMap<std::string> values_;
  LinearHashMap<Queue> queues_;
  Lines for_keys_;
  Lines at_barriers_;
  std::map<WaiterId, Waiting> waiting_;
  std::map<WaiterId, std::string> promised_;  // Woken by this queue, but has not popped.
  std::vector<WaiterId> ready_;
};

}  // namespace hlaunch
