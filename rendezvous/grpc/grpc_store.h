// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/store/store.h"
#include "rendezvous/trust/trust.h"

namespace hlaunch {

// The node that a GrpcStore makes calls for, and the rendezvous that it calls.
struct GrpcStoreOptions {
  std::string address;  // The rendezvous' address: a literal without brackets.
  std::string host;     // The name in a site's certificate of the rendezvous; empty: `address`.
  uint16_t port = 0;
  Trust trust;
  std::string job_id;
  std::string node_id;
  Incarnation incarnation = 0;
  // The time limit of calls that do not wait for other callers.
  Duration request_timeout = std::chrono::seconds(30);
};

// The keys that a job's agents share, which the rendezvous keeps. Limits and errors are in
// store.proto. Besides the errors of Store and WatchableStore, every call may fail with
//   PermissionDenied - the rendezvous has another token.
//   NotFound - the rendezvous knows no such job.
//   Aborted - this incarnation does not hold its place (any more), or the job left the round.
//   FailedPrecondition - the job is over.
//
// Thread-safe. At most 16 calls run at a time; more of them queue. A wait, a barrier and a watch
// count for as long as they last, so a caller must hold fewer than 16 of them: else a Set that
// would end them queues, and is Unavailable after the request time-out. While the rendezvous cannot
// be reached, calls that change nothing are repeated until their deadline; other calls are not.
class GrpcStore final : public Store, public WatchableStore {
 public:
  // The store connects with its first call.
  //
  // Errors:
  //   InvalidArgument - the address is not a literal.
  static absl::StatusOr<std::unique_ptr<GrpcStore>> Make(GrpcStoreOptions options);
  ~GrpcStore() override;

  // Ties all further calls to `round`: they are refused once the job has left it. With 0, which
  // holds at first, they are tied to no round.
  void SetRound(Round round);

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
  // Not atomic.
  absl::Status MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) override;
  absl::StatusOr<int64_t> NumKeys() override;

  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override;
  // After Unavailable it is unknown whether this arrival was counted.
  absl::Status Barrier(absl::string_view key, int64_t world_size, Instant deadline) override;
  // The watch has its own thread, "store-watch".
  //
  // Errors: further ones come with Next.
  //   ResourceExhausted - the thread cannot be started.
  absl::StatusOr<std::unique_ptr<StoreWatch>> Watch(absl::string_view prefix) override;

 private:
  class Link;
  explicit GrpcStore(std::unique_ptr<Link> link);

  const std::unique_ptr<Link> link_;
};

}  // namespace hlaunch
