// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/thread.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Receives SIGINT and SIGTERM, which ask a service to stop. It has a thread of its own, so it works
// even if the other threads are blocked. The thread ends the process if the stop takes too long. A
// second signal ends the process at once.
//
// Belongs to one thread.
class StopRequest {
 public:
  // Takes both signals for the whole process. Call before any other thread exists. If the stop is
  // not over `limit` after the signal, calls `give_up`, which does not return.
  //
  // Errors:
  //   ResourceExhausted - this process is out of descriptors or threads.
  static absl::StatusOr<std::unique_ptr<StopRequest>> Listen(Duration limit,
                                                             std::function<void()> give_up);
  // The stop is over: `give_up` is not called any more.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  int fd() const { return asked_.get(); }  // Readable once a signal has come.

 private:
  StopRequest(UniqueFd signals, UniqueFd asked, UniqueFd over);
  void Run(Duration limit, const std::function<void()>& give_up);

  const UniqueFd signals_, asked_, over_;
  Thread thread_;
};

}  // namespace hlaunch
