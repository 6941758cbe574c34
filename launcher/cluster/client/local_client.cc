// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/local_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/envelope.h"
#include "proto/cluster/json_fields.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr char kUsualPath[] = "/run/hlaunch/hlaunchd.sock";
constexpr Duration kLookAgain = std::chrono::milliseconds(20);

int MillisUntil(Instant deadline) {
  const Duration left = std::max(deadline - MonotonicClock().Now(), Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<int64_t>(ms, 24 * 3600 * 1000));
}

absl::Status ConnectError(int error, const std::string& path) {
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat("no hlaunchd runs on this host (there is no ", path,
                                            "); `hlaunch cluster join` makes it one of a cluster"));
  }
  if (error == ECONNREFUSED) {
    return absl::UnavailableError(
        absl::StrCat("hlaunchd of this host does not run: nobody listens at ", path,
                     "; see systemctl status hlaunchd"));
  }
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("this user may not ask this host's hlaunchd at ", path));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot ask hlaunchd at ", path, ": ", std::strerror(error)));
}

}  // namespace

std::string SocketOfDaemon(const Environment& environment) {
  const std::string path = environment.Get(kEnvDaemonSocket);
  return path.empty() ? kUsualPath : path;
}

absl::StatusOr<HereAnswer> ReadHereAnswer(const nlohmann::json& body) {
  HereAnswer answer;
  JsonFields fields(body, "here");
  fields.Text("version", &answer.version);
  fields.Text("host", &answer.host);
  fields.Text("head", &answer.head);
  fields.Flag("connected", &answer.connected);
  fields.Text("trouble", &answer.trouble);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  return answer;
}

absl::Status LocalClient::Connect(Instant deadline) {
  if (socket_.valid()) return absl::OkStatus();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path)) return ConnectError(ENAMETOOLONG, path_);
  std::memcpy(address.sun_path, path_.data(), path_.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ConnectError(errno, path_);
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return ConnectError(errno, path_);
    if (MonotonicClock().Now() >= deadline) return ConnectError(EAGAIN, path_);
    pollfd poll = {interrupt_, POLLIN, 0};  // The daemon's queue of connections is full.
    ::poll(&poll, 1, MillisUntil(MonotonicClock().Now() + kLookAgain));
    if (poll.revents != 0) return absl::CancelledError("asked to end");
  }
  socket_ = std::move(fd);
  frames_ = FrameReader(kMaxClusterFrame);
  return absl::OkStatus();
}

absl::Status LocalClient::Await(short events, Instant deadline) const {
  pollfd polls[] = {{socket_.get(), events, 0}, {interrupt_, POLLIN, 0}};
  while (true) {
    const int ready = ::poll(polls, 2, MillisUntil(deadline));
    if (polls[1].revents != 0) return absl::CancelledError("asked to end");
    if (ready > 0) return absl::OkStatus();
    if (ready == 0 && MonotonicClock().Now() >= deadline) {
      return absl::DeadlineExceededError("this host's hlaunchd does not answer");
    }
  }
}

absl::Status LocalClient::Write(absl::string_view bytes, Instant deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) {
      return absl::UnavailableError(
          absl::StrCat("this host's hlaunchd has ended the connection: ", std::strerror(errno)));
    }
    HLAUNCH_RETURN_IF_ERROR(Await(POLLOUT, deadline));
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> LocalClient::ReadAnswer(uint64_t id, Instant deadline) {
  char bytes[64 << 10];
  while (true) {
    HLAUNCH_RETURN_IF_ERROR(Await(POLLIN, deadline));
    const ssize_t n = ::read(socket_.get(), bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return absl::UnavailableError("this host's hlaunchd has ended the connection");
    const auto frames = frames_.Take({bytes, static_cast<size_t>(n)});
    if (!frames.ok()) return absl::InternalError(frames.status().message());
    for (const std::string& frame : *frames) {
      absl::StatusOr<Envelope> answer = DecodeEnvelope(frame);
      if (!answer.ok()) return absl::InternalError(answer.status().message());
      if (!answer->is_answer()) continue;
      if (answer->id == 0 && !answer->error.ok()) return answer->error;  // hlaunchd refuses.
      if (answer->id != id) continue;
      answered_ = true;
      if (!answer->error.ok()) return answer->error;
      return std::move(answer->body);
    }
  }
}

absl::StatusOr<nlohmann::json> LocalClient::Ask(absl::string_view verb, nlohmann::json body,
                                                Duration patience) {
  const Instant deadline = MonotonicClock().Now() + patience;
  const std::string question = EncodeEnvelope(Question(++last_id_, verb, std::move(body)));
  if (question.size() > kMaxUserFrame) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is too long for hlaunchd: ", question.size(), " bytes, and ",
                     kMaxUserFrame, " may go (a long environment: --export names what goes)"));
  }
  const absl::Status connected = Connect(deadline);
  if (absl::IsNotFound(connected)) return absl::UnavailableError(connected.message());
  HLAUNCH_RETURN_IF_ERROR(connected);
  answered_ = false;
  const absl::Status written = Write(EncodeFrameOf(question), deadline);
  absl::StatusOr<nlohmann::json> answer(written.ok() ? absl::UnknownError("") : written);
  // If the daemon has closed the connection, it may have sent the reason before.
  if (written.ok() || absl::IsUnavailable(written)) answer = ReadAnswer(last_id_, deadline);
  if (!written.ok() && absl::IsUnavailable(answer.status())) answer = written;
  // The answer may still come later, so the connection is not used for another question.
  if (!answered_) socket_.Close();
  return answer;
}

}  // namespace hlaunch
