// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/output_sink.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

struct OutputSink::Room {
  explicit Room(asio::io_context& loop) : event(loop) {}

  void ResumeAll() {
    eventfd_t count;
    ::eventfd_read(event.native_handle(), &count);
    for (const auto& resume : std::exchange(waiting, {})) resume();
  }

  asio::posix::stream_descriptor event;  // Readable once the writer has room.
  std::vector<std::function<void()>> waiting;
};

absl::StatusOr<std::unique_ptr<OutputSink>> OutputSink::Make(asio::io_context& loop) {
  HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<OutputWriter> writer, OutputWriter::Make());
  auto room = std::make_unique<Room>(loop);
  UniqueFd fd(::fcntl(writer->room_fd(), F_DUPFD_CLOEXEC, 3));
  asio::error_code error;
  room->event.assign(fd.get(), error);
  if (error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot watch a worker's output: ", error.message()));
  }
  fd.Release();
  return std::unique_ptr<OutputSink>(new OutputSink(std::move(writer), std::move(room)));
}

OutputSink::OutputSink(std::unique_ptr<OutputWriter> writer, std::unique_ptr<Room> room)
    : writer_(std::move(writer)), room_(std::move(room)) {}
OutputSink::~OutputSink() = default;

void OutputSink::AwaitRoom(std::function<void()> resume) {
  room_->waiting.push_back(std::move(resume));
  if (room_->waiting.size() > 1) return;
  room_->event.async_wait(asio::posix::stream_descriptor::wait_read,
                          [room = room_.get()](const asio::error_code& error) {
                            if (!error) room->ResumeAll();
                          });
}

}  // namespace hlaunch
