// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/process.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr char kHeldProgram[] = "/proc/self/fd/3";  // The further descriptor of the child.
constexpr int kExitMs = 1000;         // From closed output, or from exiting, to the exit.
constexpr size_t kMaxLine = 1 << 20;  // A longer line is an error.
constexpr size_t kMaxSaid = 1 << 20;  // Lines that the process does not read.

struct Pipe {
  UniqueFd read_end, write_end;
};

std::optional<Pipe> OpenPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

struct LineProcess::State : std::enable_shared_from_this<State> {
  State(asio::io_context& in, Events whom)
      : loop(in), input(in), out(in), exit(in), events(std::move(whom)) {}

  void Start(const std::vector<std::string>& argv, Stderr stderr_to, int program_fd) {
    std::optional<Pipe> to = OpenPipe(), from = OpenPipe();
    if (!to || !from) return Later({std::strerror(errno)});
    Command command;
    command.argv = argv;
    for (char** entry = ::environ; *entry != nullptr; ++entry) command.env.emplace_back(*entry);
    command.stdin_fd = to->read_end.get();
    command.stdout_fd = from->write_end.get();
    if (stderr_to == Stderr::kLines) command.stderr_fd = command.stdout_fd;
    if (program_fd >= 0) {
      command.program = kHeldProgram;
      command.further_fd = program_fd;
    }
    auto started = Process::Spawn(std::move(command));
    if (!started.ok()) {
      return Later({std::string(started.status().message()), absl::IsNotFound(started.status())});
    }
    process.emplace(std::move(started).value());
    // Now, since there may be no descriptor left when it ends.
    const int copy = ::fcntl(process->pidfd(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return Later({std::strerror(errno)});
    exit.assign(copy);
    ::fcntl(to->write_end.get(), F_SETFL, O_NONBLOCK);
    input.assign(to->write_end.Release());
    out.assign(from->read_end.Release());
    Read();
  }

  void Later(LineProcessEnd end) {
    asio::post(loop, [self = shared_from_this(), end = std::move(end)] { self->End(end); });
  }

  // Bytes are read only where their lines are passed on at once, so that TellNow keeps their order.
  void Read() {
    out.async_wait(asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](const asio::error_code& error) {
                     if (self->ended) return;
                     const bool open = !error && self->ReadNow();
                     if (self->ended) return;
                     open ? self->Read() : self->AwaitExit();
                   });
  }

  // Reads the available output; returns false if no more will come.
  bool ReadNow() {
    pollfd said = {out.native_handle(), POLLIN, 0};
    while (!ended && ::poll(&said, 1, 0) > 0) {
      std::array<char, 4096> bytes;
      const ssize_t size = ::read(out.native_handle(), bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return false;
      Take({bytes.data(), static_cast<size_t>(size)});
    }
    return true;
  }

  void Take(absl::string_view bytes) {
    text.append(bytes.data(), bytes.size());
    TellLines();
    if (!ended && text.size() > kMaxLine) End({"it said a line of over a megabyte"});
  }

  void TellLines() {
    size_t begin = 0;
    for (size_t end; !ended && (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      events.on_line(absl::string_view(text).substr(begin, end - begin));
    }
    text.erase(0, begin);
  }

  void AwaitExit() {
    exit.async_wait(asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](const asio::error_code& error) {
                      if (error || self->ended) return;
                      self->EndByExit();
                    });
  }

  void EndByExit() {
    const ExitStatus status = process->Reap();
    process.reset();
    End({absl::StrCat("it ended with ", status.ToString()), false, status.ShellCode() == 0,
         status.ShellCode()});
  }

  // An exiting process may close its connections to others before it closes its output.
  bool IsExiting() const {
    const std::optional<ProcessEntry> entry = ReadProcess(process->pid());
    return entry && entry->exiting;
  }

  void TellNow() {
    if (ended || !process) return;
    const bool open = ReadNow();
    if (ended || (open && !IsExiting())) return;
    pollfd exited = {process->pidfd(), POLLIN, 0};
    if (::poll(&exited, 1, kExitMs) <= 0) return;
    ReadNow();  // Its last lines.
    if (!ended) EndByExit();
  }

  void End(const LineProcessEnd& end) {
    if (ended) return;
    Stop();
    events.on_end(end);
  }

  void Stop() {
    asio::error_code ignored;
    ended = true;
    out.close(ignored);
    DropInput();
    if (process) return ReapOnceKilled();
    exit.close(ignored);
  }

  // Nothing else waits for the process, but the reaping of orphans may reap it first.
  void ReapOnceKilled() {
    process.reset();  // Kills the process if it still runs.
    exit.async_wait(asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](const asio::error_code& error) {
                      if (error) return;
                      siginfo_t info = {};
                      const auto pidfd = static_cast<id_t>(self->exit.native_handle());
                      ::waitid(P_PIDFD, pidfd, &info, WEXITED | WNOHANG);
                    });
  }

  void Say(absl::string_view line) {
    if (!input.is_open() || input_ends) return;
    const bool waits = !unread.empty();
    absl::StrAppend(&unread, line, "\n");
    if (unread.size() > kMaxSaid) return DropInput();
    if (!waits) Write();
  }

  // Writes what the pipe takes now, and the rest once the process has read.
  void Write() {
    const ssize_t size = ::write(input.native_handle(), unread.data(), unread.size());
    if (size < 0 && errno != EAGAIN) return DropInput();
    if (size > 0) unread.erase(0, static_cast<size_t>(size));
    if (unread.empty()) return input_ends ? DropInput() : void();
    input.async_wait(asio::posix::stream_descriptor::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       if (!error) self->Write();
                     });
  }

  void CloseInput() {
    input_ends = true;
    if (unread.empty()) DropInput();
  }

  void DropInput() {
    asio::error_code ignored;
    input.close(ignored);
    unread.clear();
  }

  asio::io_context& loop;
  asio::posix::stream_descriptor input;
  asio::posix::stream_descriptor out;
  asio::posix::stream_descriptor exit;  // The process's pidfd, until it was reaped.
  const Events events;
  std::optional<Process> process;
  std::string text;
  std::string unread;  // Lines, from the first byte that the pipe has not taken.
  bool input_ends = false;
  bool ended = false;
};

LineProcess::LineProcess(asio::io_context& loop, const std::vector<std::string>& argv,
                         Events events, Stderr to, int program_fd)
    : state_(std::make_shared<State>(loop, std::move(events))) {
  state_->Start(argv, to, program_fd);
}

LineProcess::~LineProcess() { state_->Stop(); }

void LineProcess::Say(absl::string_view line) { state_->Say(line); }

void LineProcess::TellNow() {
  const std::shared_ptr<State> state = state_;  // The events may destroy this object.
  state->TellNow();
}

void LineProcess::CloseInput() { state_->CloseInput(); }

pid_t LineProcess::pid() const { return state_->process ? state_->process->pid() : 0; }

}  // namespace hlaunch
