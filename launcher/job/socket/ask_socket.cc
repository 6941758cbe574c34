// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/ask_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/envelope.h"
#include "proto/cluster/frame.h"

namespace hlaunch {
namespace {

constexpr uint64_t kId = 1;

// How long to wait for a process whose queue is full: it stands still, or too many ask.
timeval UntilThen(Instant deadline) {
  using std::chrono::microseconds;
  const auto left = std::chrono::ceil<microseconds>(deadline - MonotonicClock().Now());
  const int64_t us = std::max(left, microseconds(1000)).count();  // 0 would mean for ever.
  return {static_cast<time_t>(us / 1000000), static_cast<suseconds_t>(us % 1000000)};
}

absl::Status Connect(int fd, const JobSocketName& socket) {
  const AbstractAddress address = AddressOf(socket);
  int connected = 0;
  do {
    connected = ::connect(fd, address.get(), address.length);
  } while (connected != 0 && errno == EINTR);
  if (connected == 0) return absl::OkStatus();
  if (errno == ECONNREFUSED) return absl::NotFoundError("the job is gone");
  return absl::UnavailableError(absl::StrCat("the job cannot be asked: ", std::strerror(errno)));
}

bool SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Whether there is something to read before `deadline`.
bool AwaitBytes(int fd, Instant deadline) {
  while (true) {
    const Duration left = std::max(deadline - MonotonicClock().Now(), Duration::zero());
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd poll = {fd, POLLIN, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::min<int64_t>(ms, 3600 * 1000)));
    if (ready > 0) return true;
    if (ready == 0 && MonotonicClock().Now() >= deadline) return false;
  }
}

}  // namespace

absl::StatusOr<SocketQuestion> SocketQuestion::Send(const JobSocketName& socket,
                                                    absl::string_view verb, nlohmann::json body,
                                                    Instant deadline) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) {
    return absl::UnavailableError(absl::StrCat("no socket: ", std::strerror(errno)));
  }
  const timeval limit = UntilThen(deadline);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  HLAUNCH_RETURN_IF_ERROR(Connect(fd.get(), socket));
  const std::optional<ucred> peer = CredentialsOfPeer(fd.get());
  if (!peer || peer->uid != socket.uid) {
    return absl::PermissionDeniedError("the process there is another user's");
  }
  const std::string question = EncodeEnvelope(Question(kId, verb, std::move(body)));
  if (!SendAll(fd.get(), EncodeFrameOf(question))) {
    return absl::UnavailableError("the job does not take the question");
  }
  return SocketQuestion(std::move(fd), peer->pid);
}

absl::StatusOr<nlohmann::json> SocketQuestion::Await(Instant deadline) {
  FrameReader frames(kMaxClusterFrame);
  std::vector<char> bytes(64 << 10);
  while (true) {
    if (!AwaitBytes(fd_.get(), deadline)) {
      return absl::DeadlineExceededError(
          "the job does not answer; its hlaunch stands still, or is very busy");
    }
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return absl::UnavailableError("the job has ended, or takes no more questions now");
    const auto whole = frames.Take({bytes.data(), static_cast<size_t>(n)});
    if (!whole.ok()) return absl::InternalError(whole.status().message());
    if (whole->empty()) continue;
    absl::StatusOr<Envelope> answer = DecodeEnvelope(whole->front());
    if (!answer.ok() || !answer->is_answer() || answer->id != kId) {
      return absl::InternalError("what the job says is no answer");
    }
    if (!answer->error.ok()) return answer->error;
    return std::move(answer->body);
  }
}

absl::StatusOr<nlohmann::json> AskSocket(const JobSocketName& socket, absl::string_view verb,
                                         nlohmann::json body, Duration patience) {
  const Instant deadline = MonotonicClock().Now() + patience;
  HLAUNCH_ASSIGN_OR_RETURN(SocketQuestion question,
                           SocketQuestion::Send(socket, verb, std::move(body), deadline));
  return question.Await(deadline);
}

}  // namespace hlaunch
