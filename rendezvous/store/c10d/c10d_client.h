// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/store/c10d/c10d_protocol.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

struct C10dClientOptions {
  // The limit of what does not wait for other clients: reconnecting, sending, an answer due at
  // once.
  Duration request_timeout = std::chrono::seconds(30);
  StoreLimits limits;  // The server's limits, if they are not the default.
};

// A client of a store that speaks PyTorch's TCPStore wire (2.2 and later): hlaunch's own server, or
// PyTorch's when the script runs under torchrun. Thread-safe: each call has its own connection, so
// a call that waits does not block others. Sees the same keys as torch clients.
//
// OK from a write means that the store has taken it: the wire does not acknowledge all writes, so
// the client sends a question after each of those. A broken connection is replaced. Get, MultiGet
// and Wait are repeated until their deadline; other calls are not. Get and MultiGet may return an
// empty value for a key that is deleted during the call: the wire does not tell the two apart.
class C10dClient : public Store {
 public:
  // Connects to a literal address or a host name, and retries until `deadline`. The lookup of a
  // name takes as long as the system's resolver takes.
  //
  // Errors:
  //   Unavailable - no store answered in time.
  //   InvalidArgument - there is no such host.
  static absl::StatusOr<std::unique_ptr<C10dClient>> Connect(absl::string_view host, uint16_t port,
                                                             Instant deadline,
                                                             C10dClientOptions options = {});

  std::unique_ptr<Store> Attempt(Duration patience) override;
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
  // Not atomic on PyTorch's server.
  absl::Status MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) override;
  // Counts all keys of the server, torch's own `init/` too.
  absl::StatusOr<int64_t> NumKeys() override;

 private:
  C10dClient(std::string host, uint16_t port, C10dClientOptions options)
      : host_(std::move(host)), port_(port), options_(options) {}

  using ReadReply = absl::FunctionRef<absl::Status(int fd, Instant deadline)>;

  Instant Soon() const;  // The deadline of an answer that is due at once.
  absl::StatusOr<UniqueFd> TakeConnection(Instant deadline);
  void ReturnConnection(UniqueFd connection);
  absl::Status Exchange(const C10dRequest& request, ReadReply read);
  absl::Status ExchangeUntil(Instant deadline, const C10dRequest& request, ReadReply read);
  absl::Status Write(const C10dRequest& request);
  absl::StatusOr<int64_t> AskNumber(const C10dRequest& request);
  absl::Status WaitOnce(const C10dRequest& request, Instant deadline);
  absl::Status CancelWait(UniqueFd connection, const std::vector<std::string>& keys);
  absl::Status Retry(Instant deadline, absl::FunctionRef<absl::Status()> attempt);
  absl::Status WhyNotAdded(absl::string_view key, absl::Status seen);

  const std::string host_;
  const uint16_t port_;
  const C10dClientOptions options_;
  Mutex mu_;
  std::vector<UniqueFd> idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
