// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "agent/output/output_writer.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A writer thread, and the loop's streams that wait until the writer has room.
//
// Belongs to the loop thread; `loop` outlives it.
class OutputSink {
 public:
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<OutputSink>> Make(asio::io_context& loop);
  ~OutputSink();

  OutputWriter& writer() { return *writer_; }

  // Calls `resume` from the loop once the writer has room; never if the sink is destroyed first.
  void AwaitRoom(std::function<void()> resume);

 private:
  struct Room;
  OutputSink(std::unique_ptr<OutputWriter> writer, std::unique_ptr<Room> room);

  const std::unique_ptr<OutputWriter> writer_;
  const std::unique_ptr<Room> room_;
};

}  // namespace hlaunch
