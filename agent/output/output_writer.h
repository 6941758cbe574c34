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
// system) on its own thread, in the order of Push. Bytes for a closed descriptor are dropped. The
// thread begins with the first bytes: a job whose workers say nothing pays for none. If the system
// refuses it, who pushes writes, and a warning says so.
//
// Thread-safe, where there is a thread. The caller keeps owning the descriptors, which must outlive
// the process; a file belongs to the thread once something was pushed to it.
class OutputWriter {
 public:
  // full() returns true from this many waiting bytes on; room_fd() becomes readable once a quarter
  // is left.
  static constexpr size_t kHighWater = 1024 * 1024;

  // Errors: ResourceExhausted - no descriptor.
  static absl::StatusOr<std::unique_ptr<OutputWriter>> Make();

  // Drops what is waiting. Leaves the thread behind if it is blocked.
  ~OutputWriter();

  void Push(int fd, std::string bytes);
  void Push(std::shared_ptr<LogFile> file, std::string bytes);
  // Uses a single write for `bytes`, as a datagram socket needs.
  void PushWhole(int fd, std::string bytes);
  // True if the caller should stop pushing until room_fd() (an eventfd) is readable.
  bool full() const;
  int room_fd() const;

  // Waits until everything is written or dropped; returns false if `deadline` passes first.
  bool WaitEmpty(Instant deadline) const;

 private:
  struct State;
  // For `file` if it is set, else for `fd`.
  void Queue(int fd, std::shared_ptr<LogFile> file, std::string bytes, bool whole);
  explicit OutputWriter(std::shared_ptr<State> state);

  // Owned by this object and by its thread, which may still be blocked when this object is
  // destroyed.
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
