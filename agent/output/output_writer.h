// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"

namespace hlaunch {

class LogFile;

// Writes to descriptors and files that may block for ever (a paused pager, a hung network file
// system) on a thread of its own, in the order of Push. What a closed descriptor refuses is
// dropped.
//
// Thread-safe. The descriptors stay the caller's and must outlive the process; a file that was
// pushed to belongs to the thread.
class OutputWriter {
 public:
  // full() from this many bytes that wait; room_fd() when they have fallen to a quarter.
  static constexpr size_t kHighWater = 1024 * 1024;

  // Errors: ResourceExhausted - no thread or descriptor.
  static absl::StatusOr<std::unique_ptr<OutputWriter>> Make();

  // Drops what waits. Leaves the thread behind if it is blocked.
  ~OutputWriter();

  void Push(int fd, std::string bytes);
  void Push(std::shared_ptr<LogFile> file, std::string bytes);
  // In one write of its own, as a socket for datagrams needs it.
  void PushWhole(int fd, std::string bytes);
  // Whether the caller should stop pushing, until room_fd() (an eventfd) is readable.
  bool full() const;
  int room_fd() const;

  // Waits until all is written or dropped; false if that took until `deadline`.
  bool WaitEmpty(Instant deadline) const;

 private:
  struct State;
  explicit OutputWriter(std::shared_ptr<State> state);

  // Owned by this object and by its thread, which may be blocked when this object goes.
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
