// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output_relay.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/output_lines.h"
#include "agent/output_writer.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kReadSize = 64 * 1024;
// A pipe never holds more, unless root made it so; a grandchild may write for ever.
constexpr size_t kMaxDrain = 1024 * 1024;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no pipe for a worker's output: ", std::strerror(errno)));
  }
  // The read end only: the worker's end is another open file and blocks, as programs expect.
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

absl::Status Assign(UniqueFd fd, asio::posix::stream_descriptor* descriptor) {
  asio::error_code error;
  descriptor->assign(fd.get(), error);
  if (error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot watch a worker's output: ", error.message()));
  }
  fd.Release();
  return absl::OkStatus();
}

}  // namespace

class OutputRelay::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, int out_fd, int err_fd, std::unique_ptr<OutputWriter> writer)
      : loop_(loop),
        out_fd_(out_fd),
        err_fd_(err_fd),
        writer_(std::move(writer)),
        room_(loop),
        buffer_(kReadSize) {}

  absl::Status Start() {
    return Assign(UniqueFd(::fcntl(writer_->room_fd(), F_DUPFD_CLOEXEC, 3)), &room_);
  }

  absl::StatusOr<WorkerOutput> Open(int worker, const std::string& prefix) {
    HLAUNCH_ASSIGN_OR_RETURN(Pipe out, MakePipe());
    HLAUNCH_ASSIGN_OR_RETURN(Pipe err, MakePipe());
    Worker fresh;
    fresh.tail = std::make_shared<OutputTail>();
    fresh.streams = {std::make_shared<Stream>(loop_, prefix, out_fd_, nullptr),
                     std::make_shared<Stream>(loop_, prefix, err_fd_, fresh.tail)};
    HLAUNCH_RETURN_IF_ERROR(Assign(std::move(out.read_end), &fresh.streams[0]->fd));
    HLAUNCH_RETURN_IF_ERROR(Assign(std::move(err.read_end), &fresh.streams[1]->fd));
    Close(worker);
    for (const auto& stream : fresh.streams) Await(stream);
    workers_[worker] = std::move(fresh);
    return WorkerOutput{std::move(out.write_end), std::move(err.write_end)};
  }

  std::string Tail(int worker) const {
    const auto found = workers_.find(worker);
    return found == workers_.end() ? "" : found->second.tail->Text();
  }

  void Drain(int worker) {
    const auto found = workers_.find(worker);
    if (found == workers_.end()) return;
    for (const auto& stream : found->second.streams) {
      size_t drained = 0;
      while (stream->fd.is_open() && drained < kMaxDrain) {
        const size_t n = ReadOnce(*stream);
        if (n == 0) break;
        drained += n;
      }
    }
  }

  void Close(int worker) {
    Drain(worker);
    const auto found = workers_.find(worker);
    if (found == workers_.end()) return;
    for (const auto& stream : found->second.streams) End(*stream);
    found->second.streams.clear();
  }

  bool Flush(Instant deadline) { return writer_->WaitEmpty(deadline); }

 private:
  struct Stream {
    Stream(asio::io_context& loop, const std::string& prefix, int sink_fd,
           std::shared_ptr<OutputTail> kept)
        : fd(loop), cutter(prefix), sink(sink_fd), tail(std::move(kept)) {}
    asio::posix::stream_descriptor fd;
    LineCutter cutter;
    int sink;
    std::shared_ptr<OutputTail> tail;  // Also the worker's; null for stdout.
  };
  // A stream is owned by its worker and by the handler that waits for it.
  struct Worker {
    std::vector<std::shared_ptr<Stream>> streams;
    std::shared_ptr<OutputTail> tail;
  };

  void Await(const std::shared_ptr<Stream>& stream) {
    if (!stream->fd.is_open()) return;
    if (writer_->full()) {
      if (paused_.empty()) AwaitRoom();
      paused_.push_back(stream);
      return;
    }
    stream->fd.async_wait(asio::posix::stream_descriptor::wait_read,
                          [weak = weak_from_this(), stream](const asio::error_code& error) {
                            const std::shared_ptr<Impl> self = weak.lock();
                            if (error || self == nullptr || !stream->fd.is_open()) return;
                            self->ReadOnce(*stream);
                            self->Await(stream);
                          });
  }

  void AwaitRoom() {
    room_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [weak = weak_from_this()](const asio::error_code& error) {
                       const std::shared_ptr<Impl> self = weak.lock();
                       if (error || self == nullptr) return;
                       eventfd_t count;
                       ::eventfd_read(self->room_.native_handle(), &count);
                       for (const auto& stream : std::exchange(self->paused_, {})) {
                         self->Await(stream);
                       }
                     });
  }

  // Returns how many bytes came; 0 if none is there now or the stream has ended.
  size_t ReadOnce(Stream& stream) {
    const ssize_t n = ::read(stream.fd.native_handle(), buffer_.data(), buffer_.size());
    if (n > 0) {
      const absl::string_view bytes(buffer_.data(), static_cast<size_t>(n));
      if (stream.tail != nullptr) stream.tail->Add(bytes);
      writer_->Push(stream.sink, stream.cutter.Feed(bytes));
      return bytes.size();
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) End(stream);
    return 0;
  }

  void End(Stream& stream) {
    if (!stream.fd.is_open()) return;
    writer_->Push(stream.sink, stream.cutter.Finish());
    asio::error_code ignored;
    stream.fd.close(ignored);
  }

  asio::io_context& loop_;
  const int out_fd_;
  const int err_fd_;
  const std::unique_ptr<OutputWriter> writer_;
  asio::posix::stream_descriptor room_;
  std::vector<char> buffer_;
  std::map<int, Worker> workers_;
  std::vector<std::shared_ptr<Stream>> paused_;
};

absl::StatusOr<std::unique_ptr<OutputRelay>> OutputRelay::Make(asio::io_context& loop, int out_fd,
                                                               int err_fd) {
  HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<OutputWriter> writer, OutputWriter::Make());
  auto impl = std::make_shared<Impl>(loop, out_fd, err_fd, std::move(writer));
  HLAUNCH_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<OutputRelay>(new OutputRelay(std::move(impl)));
}

OutputRelay::OutputRelay(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputRelay::~OutputRelay() = default;

absl::StatusOr<WorkerOutput> OutputRelay::Open(int worker, const std::string& prefix) {
  return impl_->Open(worker, prefix);
}
std::string OutputRelay::Tail(int worker) const { return impl_->Tail(worker); }
void OutputRelay::Drain(int worker) { impl_->Drain(worker); }
void OutputRelay::Close(int worker) { impl_->Close(worker); }
bool OutputRelay::Flush(Instant deadline) { return impl_->Flush(deadline); }

}  // namespace hlaunch
