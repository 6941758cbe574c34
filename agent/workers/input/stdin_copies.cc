// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/input/stdin_copies.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "asio/posix/stream_descriptor.hpp"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

absl::Status OutOf(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("--stdin all: cannot make ", what, ": ", std::strerror(errno)));
}

}  // namespace

// The pipe to one worker.
struct StdinCopies::Copy {
  explicit Copy(asio::io_context& loop) : out(loop) {}
  asio::posix::stream_descriptor out;  // Closed once the worker has all, or stops reading.
  off_t at = 0;                        // How much of the kept data was written.
  bool waits = false;                  // Waits for room in the pipe.
};

absl::StatusOr<std::unique_ptr<StdinCopies>> StdinCopies::Open(asio::io_context& loop) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return OutOf("a file for what comes");
  UniqueFd kept(::fcntl(::fileno(file), F_DUPFD_CLOEXEC, 0));
  std::fclose(file);
  if (!kept.valid()) return OutOf("a file for what comes");
  return std::unique_ptr<StdinCopies>(new StdinCopies(loop, std::move(kept)));
}

StdinCopies::StdinCopies(asio::io_context& loop, UniqueFd kept)
    : loop_(loop),
      kept_(std::move(kept)),
      reader_(loop, [this](const std::string& bytes) { return Keep(bytes); }) {
  reader_.Go();
}

StdinCopies::~StdinCopies() = default;

absl::StatusOr<UniqueFd> StdinCopies::Link() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return OutOf("a pipe");
  UniqueFd in(ends[0]), out(ends[1]);
  if (::fcntl(out.get(), F_SETFL, O_NONBLOCK) != 0) return OutOf("a pipe");
  auto copy = std::make_shared<Copy>(loop_);
  asio::error_code error;
  copy->out.assign(out.get(), error);
  if (error) return OutOf("a pipe");
  out.Release();
  copies_.push_back(copy);
  Feed(copy);
  return in;
}

void StdinCopies::Clear() { copies_.clear(); }

// Keeps a piece of data; an empty piece is the end.
bool StdinCopies::Keep(const std::string& bytes) {
  ended_ = bytes.empty();
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(kept_.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      LogWarning(absl::StrCat("--stdin all: what comes cannot be kept: ", std::strerror(errno),
                              "; the workers find its end here"));
      ended_ = true;
      break;
    }
    done += static_cast<size_t>(n);
  }
  for (const std::shared_ptr<Copy>& copy : copies_) Feed(copy);
  return !ended_;
}

// Writes as much as there is and as the pipe has room for.
void StdinCopies::Feed(const std::shared_ptr<Copy>& copy) {
  char bytes[kStdinChunk];
  while (copy->out.is_open() && !copy->waits) {
    const ssize_t there = ::pread(kept_.get(), bytes, sizeof bytes, copy->at);
    if (there <= 0 && !ended_) return;
    const ssize_t n =
        there <= 0 ? 0 : ::write(copy->out.native_handle(), bytes, static_cast<size_t>(there));
    if (n > 0) {
      copy->at += n;
    } else if (n < 0 && errno == EAGAIN) {
      copy->waits = true;
      copy->out.async_wait(asio::posix::descriptor_base::wait_write,
                           [this, weak = std::weak_ptr(copy)](const asio::error_code& error) {
                             const std::shared_ptr<Copy> waiting = weak.lock();
                             if (error || waiting == nullptr) return;
                             waiting->waits = false;
                             Feed(waiting);
                           });
    } else if (there <= 0 || errno != EINTR) {  // The end, or no reader is left.
      asio::error_code ignored;
      copy->out.close(ignored);
    }
  }
}

}  // namespace hlaunch
