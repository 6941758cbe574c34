// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/deliver_event.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/process.h"
#include "proto/base/address.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/find_host.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr Duration kFirstPause = std::chrono::milliseconds(500);
constexpr Duration kConnectLimit = std::chrono::seconds(3);  // For one address.
constexpr int kTries = 4;
constexpr size_t kMaxAnswer = 16 << 10;  // No more of an answer is read.

// Waits until `fd` is ready for `what`. Returns false if that does not happen before `until`.
bool Await(int fd, int16_t what, Instant until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Now()).count();
    pollfd asked = {fd, what, 0};
    const int ready = ::poll(&asked, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

absl::Status TookTooLong() { return absl::DeadlineExceededError("it took too long"); }

// ---- A command.

// Makes a memory file that is read from its beginning. So no process has to write while it is read.
UniqueFd FileOf(string_view text) {
  UniqueFd file(::memfd_create("hlaunch-event", MFD_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return {};
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

absl::Status RunCommand(const std::vector<std::string>& argv, string_view event, Instant until) {
  const UniqueFd input = FileOf(event);
  if (!input.valid()) return absl::ResourceExhaustedError(std::strerror(errno));
  Command command;
  command.argv = argv;
  for (char** entry = ::environ; *entry != nullptr; ++entry) command.env.emplace_back(*entry);
  command.stdin_fd = input.get();
  command.stdout_fd = STDERR_FILENO;
  HLAUNCH_ASSIGN_OR_RETURN(Process process, Process::Spawn(std::move(command)));
  const bool ended = Await(process.pidfd(), POLLIN, until);
  // Processes that the command left in the background do not outlive it either.
  process.SignalGroup(SIGKILL);
  if (!ended && !Await(process.pidfd(), POLLIN, Now() + std::chrono::seconds(1))) {
    return TookTooLong();
  }
  const ExitStatus status = process.Reap();
  if (!ended) return TookTooLong();
  if (status.ShellCode() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("it ended with ", status.ToString()));
}

// ---- A URL.

absl::StatusOr<UniqueFd> Connect(const EventUrl& url, Instant until) {
  const FoundHost found = FindHost(url.host);
  std::string why = found.why;
  for (const std::string& address : found.literals) {
    int error = 0;
    UniqueFd socket = BeginToConnect(address, url.port, &error);
    if (socket.valid()) {
      socklen_t size = sizeof(error);
      if (!Await(socket.get(), POLLOUT, std::min(until, Now() + kConnectLimit))) {
        error = ETIMEDOUT;
      } else {
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (error == 0) return socket;
    }
    why = std::strerror(error);
  }
  return absl::UnavailableError(absl::StrCat("it cannot be reached: ", why));
}

absl::Status Send(int socket, string_view bytes, Instant until) {
  while (!bytes.empty()) {
    if (!Await(socket, POLLOUT, until)) return TookTooLong();
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return absl::UnavailableError(std::strerror(errno));
    }
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

// Receives the beginning of the answer, with interim answers before it; only that is used.
absl::StatusOr<std::string> Receive(int socket, Instant until) {
  std::array<char, 1024> bytes;
  std::string answer;
  while (answer.size() < kMaxAnswer && WithoutInterim(answer).find('\n') == string_view::npos) {
    if (!Await(socket, POLLIN, until)) return TookTooLong();
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    answer.append(bytes.data(), static_cast<size_t>(got));
  }
  return answer;
}

absl::Status PostOnce(const EventUrl& url, string_view event, Instant until) {
  HLAUNCH_ASSIGN_OR_RETURN(const UniqueFd socket, Connect(url, until));
  HLAUNCH_RETURN_IF_ERROR(Send(socket.get(), PostOfEvent(url, event), until));
  HLAUNCH_ASSIGN_OR_RETURN(const std::string answer, Receive(socket.get(), until));
  return ReadPostAnswer(answer);
}

absl::Status Post(const EventUrl& url, string_view event, Instant until) {
  Duration pause = kFirstPause;
  for (int tries = 1;; ++tries, pause *= 2) {
    const absl::Status posted = PostOnce(url, event, until);
    if (!absl::IsUnavailable(posted) || tries == kTries || Now() + pause >= until) return posted;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

std::string EventReceiver::Name() const {
  if (url) return absl::StrCat("http://", HostPort(url->host, url->port));
  return command.empty() ? "" : command.front();
}

absl::Status DeliverEvent(const EventReceiver& receiver, string_view event, Instant until) {
  return receiver.url ? Post(*receiver.url, event, until)
                      : RunCommand(receiver.command, event, until);
}

}  // namespace hlaunch
