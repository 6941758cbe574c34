// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "proto/base/mutex.h"
#include "rendezvous/store/key_space.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// What a key that a wait or a watch names counts beside its bytes.
inline constexpr size_t kEntryBytes = 64;

// A Store in one process' memory: for a job on one node, for tests, and for the keys that a job's
// agents share through the rendezvous. Thread-safe. No wait or watch may be left when it is
// destroyed.
class MemoryStore : public Store, public WatchableStore {
 public:
  struct Options {
    StoreLimits limits;
    // The most waits and watches at a time, and the most bytes of the keys that all waits name.
    size_t max_waits = std::numeric_limits<size_t>::max();
    size_t max_waiting_bytes = std::numeric_limits<size_t>::max();
  };

  MemoryStore() : MemoryStore(Options{}) {}
  explicit MemoryStore(const Options& options) : options_(options), keys_(options.limits) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key, Instant deadline) override;
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override;
  absl::StatusOr<std::string> CompareAndSet(absl::string_view key, absl::string_view expected,
                                            absl::string_view desired) override;
  absl::Status Append(absl::string_view key, absl::string_view data) override;
  absl::StatusOr<bool> Delete(absl::string_view key) override;
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys) override;
  absl::Status Wait(const std::vector<std::string>& keys, Instant deadline) override;
  absl::StatusOr<std::vector<std::string>> MultiGet(const std::vector<std::string>& keys,
                                                    Instant deadline) override;
  absl::Status MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) override;
  absl::StatusOr<int64_t> NumKeys() override;

  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override;
  absl::Status Barrier(absl::string_view key, int64_t world_size, Instant deadline) override;
  // Errors: ResourceExhausted - there are too many waits and watches.
  absl::StatusOr<std::unique_ptr<StoreWatch>> Watch(absl::string_view prefix) override;

  // The same waits for callers that must not block. `done` is called once, with no lock held: from
  // the thread that made the change, or before the call returns. It is not called after a GiveUp
  // that returned true.
  using WaitId = KeySpace::WaiterId;
  using Values = std::vector<std::string>;
  using Done = std::function<void(absl::StatusOr<Values>)>;

  // Calls `done` once all of `keys` exist, with their values of that moment if `with_values` is
  // true. Without values, a key that has come during the wait counts even if it is gone again.
  WaitId WhenAll(const std::vector<std::string>& keys, bool with_values, Done done);
  // Counts an arrival; calls `done` once `world_size` have arrived. GiveUp does not undo the
  // arrival.
  WaitId WhenBarrier(absl::string_view key, int64_t world_size, Done done);
  bool GiveUp(WaitId id);

  // The changes that a watch has not told yet. Guarded by the store; only its methods use a Feed.
  struct Feed {
    std::string prefix;
    std::function<void()> on_news;
    bool fresh = true;                      // True until the first Take.
    std::vector<std::string> changed;       // Changed keys, in the order of their first change.
    absl::flat_hash_set<std::string> once;  // The same keys, so that each is there once.
    size_t bytes = 0;                       // The bytes of these keys.
    bool overrun = false;                   // They became too many before they were taken.
  };

  // Begins to watch. `on_news` is called like `done` above, each time there is something to take
  // after there was nothing; perhaps once more after Unfollow has returned.
  //
  // Errors:
  //   ResourceExhausted - there are too many waits and watches.
  absl::StatusOr<std::shared_ptr<Feed>> Follow(absl::string_view prefix,
                                               std::function<void()> on_news);
  struct Taken {
    std::vector<KeyChange> changes;
    bool more = false;   // There is more to take at once.
    bool first = false;  // These keys existed when the watch began; may be none.
  };
  // Returns what has changed since the last call, at most about `max_bytes` of it.
  //
  // Errors:
  //   ResourceExhausted - too much has changed since the last call, so the changes are lost.
  absl::StatusOr<Taken> Take(const std::shared_ptr<Feed>& feed, size_t max_bytes);
  void Unfollow(const std::shared_ptr<Feed>& feed);

  // Makes every call return `why` from now on, also those that wait now. Removes the keys.
  void End(const absl::Status& why);

 private:
  struct Waiting {
    std::vector<std::string> keys;  // The keys whose values are wanted.
    size_t bytes = 0;
    Done done;
  };
  class News;

  absl::Status CheckKeysLocked(const std::vector<std::string>& keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status MissingLocked(const std::vector<std::string>& keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Values ValuesLocked(const std::vector<std::string>& keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status MakeRoomLocked(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ChangedLocked(absl::string_view key, News* news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteLocked(Feed& feed, absl::string_view key, News* news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Values> Await(const std::function<WaitId(Done)>& begin, const absl::Status& late,
                               Instant deadline);
  absl::StatusOr<Values> AwaitKeys(const std::vector<std::string>& keys, bool with_values,
                                   Instant deadline);

  const Options options_;
  Mutex mu_;
  KeySpace keys_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);  // OK until End.
  WaitId last_id_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<WaitId, Waiting> waits_ ABSL_GUARDED_BY(mu_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::shared_ptr<Feed>> feeds_ ABSL_GUARDED_BY(mu_);  // The watches own them, too.
};

// "timed out waiting for keys that nobody has set: 'a', 'b', 'c' and 7 more". Every Store says
// this.
absl::Status WaitTimedOut(const std::vector<std::string>& missing);
absl::Status BarrierTimedOut(absl::string_view key);
absl::Status NothingChanged();

}  // namespace hlaunch
