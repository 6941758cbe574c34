// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// The key space of one round, with the semantics of PyTorch's c10d store: a later Set
// overwrites, counters are decimal text.
//
// Thread-safe. Implementations must pass tests/rendezvous/store_contract.h.
//
// Every method that talks to another process also returns
//   Unavailable - the store could not be reached; it is unknown whether a write took place.
//   ResourceExhausted - key, value or list is over the store's limits.
class Store {
 public:
  virtual ~Store() = default;

  // Sets `key`, whatever it held, and wakes the callers that wait for it.
  virtual absl::Status Set(absl::string_view key, absl::string_view value) = 0;

  // Blocks until `key` exists and returns its value.
  //
  // Errors:
  //   DeadlineExceeded - `key` was not set in time.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, Instant deadline) = 0;

  // Adds `delta` to the counter `key`, 0 if it did not exist; the sum wraps around in 64 bits.
  //
  // Errors:
  //   FailedPrecondition - the value does not begin with a number.
  virtual absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) = 0;

  // Sets `key` to `desired` if it holds `expected` (or is absent and `expected` is empty).
  // Returns what it holds afterwards; for an absent key that was not set, `expected`, as
  // PyTorch's store does.
  virtual absl::StatusOr<std::string> CompareAndSet(absl::string_view key,
                                                    absl::string_view expected,
                                                    absl::string_view desired) = 0;

  // Appends to `key`, which begins empty if it did not exist.
  virtual absl::Status Append(absl::string_view key, absl::string_view data) = 0;

  // Returns whether `key` existed.
  virtual absl::StatusOr<bool> Delete(absl::string_view key) = 0;

  // Returns whether all of `keys` exist.
  virtual absl::StatusOr<bool> Check(const std::vector<std::string>& keys) = 0;

  // Blocks until all of `keys` exist. A key that has come during the wait may count even if it is
  // deleted again, as in PyTorch's store.
  //
  // Errors:
  //   DeadlineExceeded - they did not come in time; the message names up to three that are missing.
  virtual absl::Status Wait(const std::vector<std::string>& keys, Instant deadline) = 0;

  // Blocks until all of `keys` exist and returns their values in that order.
  //
  // Errors:
  //   DeadlineExceeded - as Wait.
  virtual absl::StatusOr<std::vector<std::string>> MultiGet(const std::vector<std::string>& keys,
                                                            Instant deadline) = 0;

  // Sets all pairs; not atomic on every store.
  virtual absl::Status MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) = 0;

  // Number of keys.
  virtual absl::StatusOr<int64_t> NumKeys() = 0;

  // Returns a store with the same keys for writes that are worth only one attempt: calls that wait
  // for no other caller end within `patience`. Null if this store does so anyway. May outlive this
  // store.
  virtual std::unique_ptr<Store> Attempt(Duration /*patience*/) { return nullptr; }
};

// "timed out waiting for keys that nobody has set: 'a', 'b', 'c' and 7 more". Every Store says
// this.
absl::Status WaitTimedOut(const std::vector<std::string>& missing);

}  // namespace hlaunch
