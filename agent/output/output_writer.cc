// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/output_writer.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/output/log_file.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/thread.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kBatch = 64 * 1024;
constexpr std::chrono::milliseconds kJoinTime(100);

// Bytes for `file` if it is set, else for `fd`.
struct Chunk {
  int fd = -1;
  std::shared_ptr<LogFile> file;
  std::string bytes;
  bool whole = false;  // Never joined with other chunks.
};

std::string NameOf(int fd) {
  if (fd == STDOUT_FILENO) return "stdout";
  if (fd == STDERR_FILENO) return "stderr";
  std::error_code error;
  const auto path = std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd), error);
  return error ? absl::StrCat("descriptor ", fd) : path.string();
}

}  // namespace

struct OutputWriter::State {
  explicit State(UniqueFd event) : room(std::move(event)) {}

  const UniqueFd room;
  mutable Mutex mu;
  mutable CondVar changed;
  std::deque<Chunk> queue ABSL_GUARDED_BY(mu);
  size_t waiting ABSL_GUARDED_BY(mu) = 0;  // Bytes in `queue` and being written.
  bool was_full ABSL_GUARDED_BY(mu) = false;
  bool stopping ABSL_GUARDED_BY(mu) = false;
  bool exited ABSL_GUARDED_BY(mu) = false;
  bool has_thread ABSL_GUARDED_BY(mu) = false;
  bool without_thread ABSL_GUARDED_BY(mu) = false;  // The system refuses one.
  std::set<int> complained, closed;                 // Of who writes.

  void Push(Chunk chunk) {
    MutexLock lock(&mu);
    if (waiting == 0) changed.SignalAll();
    waiting += chunk.bytes.size();
    if (waiting >= kHighWater) was_full = true;
    if (!chunk.whole && !queue.empty() && queue.back().fd == chunk.fd &&
        queue.back().file == chunk.file &&
        queue.back().bytes.size() + chunk.bytes.size() <= kBatch) {
      queue.back().bytes += chunk.bytes;
    } else {
      queue.push_back(std::move(chunk));
    }
  }

  bool Stopping() const {
    MutexLock lock(&mu);
    return stopping;
  }

  // Waits for the next chunk, unless the caller is `without_thread`. Returns false if there is
  // none.
  bool Take(Chunk* chunk) {
    MutexLock lock(&mu);
    while (queue.empty() && !stopping && !without_thread) changed.Wait(&mu);
    if (stopping || queue.empty()) return false;
    *chunk = std::move(queue.front());
    queue.pop_front();
    return true;
  }

  void Done(size_t bytes) {
    bool has_room = false;
    {
      MutexLock lock(&mu);
      waiting -= bytes;
      has_room = was_full && waiting <= kHighWater / 4;
      if (has_room) was_full = false;
      if (waiting == 0) changed.SignalAll();
    }
    if (has_room) ::eventfd_write(room.get(), 1);
  }

  // Returns 0, or the errno that stopped it.
  int Write(const Chunk& chunk) const {
    absl::string_view left = chunk.bytes;
    while (!left.empty()) {
      const ssize_t n = ::write(chunk.fd, left.data(), left.size());
      if (n > 0) {
        left.remove_prefix(static_cast<size_t>(n));
      } else if (n < 0 && errno == EAGAIN) {
        // Another process that shares the descriptor made it non-blocking.
        pollfd writable = {chunk.fd, POLLOUT, 0};
        ::poll(&writable, 1, static_cast<int>(kJoinTime.count()));
        if (Stopping()) return 0;
      } else if (n < 0 && errno != EINTR) {
        return errno;
      }
    }
    return 0;
  }

  void Complain(int fd, int error) {
    if (error == 0) return;
    // A full disk may have room again, but a closed pipe never gets another reader.
    if (error != ENOSPC && error != EDQUOT) closed.insert(fd);
    if (!complained.insert(fd).second) return;
    LogWarning(absl::StrCat("output is lost: ", NameOf(fd), ": ", std::strerror(error)));
  }

  void WriteAll() {
    Chunk chunk;
    while (Take(&chunk)) {
      if (chunk.file != nullptr) {
        chunk.file->Write(chunk.bytes);
      } else if (closed.count(chunk.fd) == 0) {
        Complain(chunk.fd, Write(chunk));
      }
      Done(chunk.bytes.size());
    }
  }

  void Run() {
    WriteAll();
    MutexLock lock(&mu);
    exited = true;
    changed.SignalAll();
  }

  // Starts the thread of `state`. Nobody waits for it: what it writes to may block for ever.
  static absl::Status Start(const std::shared_ptr<State>& state) {
    // The writer thread takes no signal; with SIGPIPE blocked, write returns EPIPE.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    absl::Status started = StartUnawaited("hl-output", [state] { state->Run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }

  // Starts the thread of `state`, unless it runs. Returns false if the system refuses one.
  static bool Begin(const std::shared_ptr<State>& state) {
    absl::Status started;
    {
      MutexLock lock(&state->mu);
      if (state->has_thread) return true;
      if (state->without_thread) return false;
      started = Start(state);
      (started.ok() ? state->has_thread : state->without_thread) = true;
    }
    if (started.ok()) return true;
    LogWarning(absl::StrCat("no thread for output, so who does not read it holds up the job: ",
                            started.message()));
    return false;
  }
};

absl::StatusOr<std::unique_ptr<OutputWriter>> OutputWriter::Make() {
  UniqueFd room(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!room.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("eventfd: ", std::strerror(errno)));
  }
  return std::unique_ptr<OutputWriter>(new OutputWriter(std::make_shared<State>(std::move(room))));
}

OutputWriter::OutputWriter(std::shared_ptr<State> state) : state_(std::move(state)) {}

OutputWriter::~OutputWriter() {
  const Instant deadline = MonotonicClock().Now() + kJoinTime * 2;
  MutexLock lock(&state_->mu);
  if (!state_->has_thread) return;
  state_->stopping = true;
  state_->changed.SignalAll();
  while (!state_->exited && state_->changed.WaitUntil(&state_->mu, deadline)) {
  }
}

void OutputWriter::Queue(int fd, std::shared_ptr<LogFile> file, std::string bytes, bool whole) {
  if (bytes.empty()) return;
  const bool has_thread = State::Begin(state_);
  state_->Push({fd, std::move(file), std::move(bytes), whole});
  if (!has_thread) state_->WriteAll();
}

void OutputWriter::Push(int fd, std::string bytes) { Queue(fd, nullptr, std::move(bytes), false); }
void OutputWriter::Push(std::shared_ptr<LogFile> file, std::string bytes) {
  Queue(-1, std::move(file), std::move(bytes), false);
}
void OutputWriter::PushWhole(int fd, std::string bytes) {
  Queue(fd, nullptr, std::move(bytes), true);
}
bool OutputWriter::full() const {
  MutexLock lock(&state_->mu);
  return state_->was_full;
}

int OutputWriter::room_fd() const { return state_->room.get(); }

bool OutputWriter::WaitEmpty(Instant deadline) const {
  MutexLock lock(&state_->mu);
  while (state_->waiting > 0) {
    if (!state_->changed.WaitUntil(&state_->mu, deadline)) return state_->waiting == 0;
  }
  return true;
}

}  // namespace hlaunch
