// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The port on loopback where the workers of one round find their PMI-1 server. Loopback is open to
// all users of the host, and a worker can have programs started as the job's user. So only
// processes of this user and of root are heard, unless the user of hlaunch lets all be; each has to
// send its worker's number, and after some wrong numbers the port closes.
//
// Belongs to the loop thread.
class PmiPort {
 public:
  // Gets the connection of a worker whose number has come; no worker comes twice.
  using OnWorkerFn = std::function<void(UniqueFd fd, int local_rank)>;

  // Errors: as Listen.
  static absl::StatusOr<std::unique_ptr<PmiPort>> Open(asio::io_context& loop, bool any_user,
                                                       OnWorkerFn on_worker);
  ~PmiPort();

  uint16_t number() const;

  // Returns the number for `local_rank`, which has none yet.
  int NewId(int local_rank);

 private:
  struct State;
  explicit PmiPort(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
