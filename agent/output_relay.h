// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The write ends of one worker's stdout and stderr: hand them to Spawn, then drop them.
struct WorkerOutput {
  UniqueFd out;
  UniqueFd err;
};

// Carries the workers' stdout and stderr to ours: whole lines with the worker's prefix, never
// mixed, and the end of each stderr kept for the report. Never blocks the loop: while ours
// blocks, the workers' pipes are not read, and a closed one only loses what it is sent.
//
// Belongs to the loop's thread; `loop` outlives it. Workers are named by local rank.
class OutputRelay {
 public:
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<OutputRelay>> Make(asio::io_context& loop, int out_fd = 1,
                                                           int err_fd = 2);
  // Drops what ours has not taken: Flush first.
  ~OutputRelay();

  // New pipes for `worker`, in place of those it had; its tail starts empty. An empty `prefix`
  // passes every byte on unchanged and at once.
  //
  // Errors: ResourceExhausted - out of descriptors.
  absl::StatusOr<WorkerOutput> Open(int worker, const std::string& prefix);

  // The last lines of the worker's stderr, as OutputTail::Text says.
  std::string Tail(int worker) const;

  // Reads what the worker has written until now, without waiting for what still holds its pipes
  // open. Call once it has exited, before Tail.
  void Drain(int worker);

  // Drains, ends the last lines and closes the pipes; who still writes gets SIGPIPE. The tail
  // stays.
  void Close(int worker);

  // Blocks until our stdout and stderr have taken all, or `deadline`: false then.
  bool Flush(Instant deadline);

 private:
  class Impl;
  explicit OutputRelay(std::shared_ptr<Impl> impl);
  // Owned by this object; a handler in the loop holds it while it runs.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hlaunch
