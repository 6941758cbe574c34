// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/local_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/write.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/cluster/frame.h"
#include "rendezvous/net/socket/accept.h"

namespace hlaunch {
namespace {

constexpr Duration kFirstTime = std::chrono::seconds(10);  // Until the first question has arrived.
constexpr Duration kIdleTime = std::chrono::minutes(5);
constexpr Duration kWriteTime = std::chrono::seconds(20);
constexpr int kBacklog = 128;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

bool SomebodyListens(const sockaddr_un& address) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
             0 ||
         errno == EAGAIN;
}

// Sends the reason to the process that has connected, without reading its question. Never waits.
void RefuseAt(int socket, const std::string& why) {
  Envelope answer;
  answer.error = absl::ResourceExhaustedError(why);
  const std::string bytes = EncodeFrameOf(EncodeEnvelope(answer));
  if (::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
}

}  // namespace

// One user's connection. Belongs to the server. Handlers that wait in the loop share it.
class LocalServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(LocalServer& server, uint64_t number, UniqueFd socket, PeerUser peer)
      : server_(&server),
        number_(number),
        peer_(std::move(peer)),
        socket_(server.loop_, socket.Release()),
        limit_(server.loop_) {
    socket_.non_blocking(true);
  }

  uid_t uid() const { return peer_.uid; }
  // The user's name; empty: not known yet.
  const std::string& name() const { return name_; }
  // Since when it has had no question; unset: it has one now.
  std::optional<Instant> idle_since() const { return idle_since_; }
  void Read();
  // Closes the connection, which does not belong to the server from now on.
  void Cut() {
    server_ = nullptr;
    std::error_code ignored;
    socket_.close(ignored);
    limit_.cancel();
  }

 private:
  void End() {
    if (server_ != nullptr) server_->Forget(number_);
  }
  void Limit(Duration time);
  void Took(size_t size);
  void AnswerNext();
  void Say(const Envelope& envelope);

  LocalServer* server_;  // Null once Cut was called.
  const uint64_t number_;
  const PeerUser peer_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer limit_;
  std::optional<Instant> idle_since_ = MonotonicClock().Now();
  bool has_asked_ = false;
  std::string name_;
  bool refused_ = false;  // Its user could not be found out.
  FrameReader frames_{kMaxUserFrame};
  std::vector<std::string> questions_;  // Questions that were read and are not answered yet.
  char bytes_[16 << 10];
  std::string writing_;
};

void LocalServer::Connection::Limit(Duration time) {
  limit_.expires_after(time);
  limit_.async_wait([self = shared_from_this()](std::error_code error) {
    if (!error) self->End();
  });
}

void LocalServer::Connection::Read() {
  if (server_ == nullptr) return;
  // The limit counts from the idle time, however slowly the bytes of a question come.
  Limit(*idle_since_ + (has_asked_ ? kIdleTime : kFirstTime) - MonotonicClock().Now());
  socket_.async_read_some(asio::buffer(bytes_),
                          [self = shared_from_this()](std::error_code error, size_t size) {
                            if (self->server_ == nullptr) return;
                            if (error) return self->End();
                            self->Took(size);
                          });
}

void LocalServer::Connection::Took(size_t size) {
  absl::StatusOr<std::vector<std::string>> frames = frames_.Take(absl::string_view(bytes_, size));
  if (!frames.ok()) return End();
  questions_ = *std::move(frames);
  AnswerNext();
}

void LocalServer::Connection::AnswerNext() {
  if (questions_.empty()) {
    if (!idle_since_) idle_since_ = MonotonicClock().Now();
    return Read();
  }
  absl::StatusOr<Envelope> question = DecodeEnvelope(questions_.front());
  questions_.erase(questions_.begin());
  if (!question.ok() || question->ask.empty()) return End();
  limit_.cancel();
  idle_since_.reset();
  has_asked_ = true;
  const auto done = [self = shared_from_this(),
                     asked = *question](const absl::StatusOr<nlohmann::json>& answer) {
    self->Say(answer.ok() ? AnswerTo(asked, *answer) : ErrorTo(asked, answer.status()));
  };
  const auto ask = [self = shared_from_this(), asked = *std::move(question),
                    done](absl::StatusOr<ClusterUser> user) mutable {
    if (self->server_ == nullptr) return;
    if (!user.ok()) {
      self->refused_ = true;
      return done(user.status());
    }
    self->name_ = user->name;
    asked.user = *std::move(user);
    self->server_->answer_(asked, done);
  };
  server_->users_.Find(peer_, ask);
}

void LocalServer::Connection::Say(const Envelope& envelope) {
  if (server_ == nullptr) return;
  std::string json = EncodeEnvelope(envelope);
  if (json.size() > kMaxClusterFrame) {
    json = EncodeEnvelope(
        ErrorTo(envelope, absl::ResourceExhaustedError("the answer is too long; ask for less")));
  }
  writing_ = EncodeFrameOf(json);
  Limit(kWriteTime);
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](std::error_code error, size_t) {
                      if (self->server_ == nullptr) return;
                      if (error || self->refused_) return self->End();
                      self->AnswerNext();
                    });
}

LocalServer::LocalServer(asio::io_context& loop, UniqueFd listener, PeerUsers& users, Answer answer)
    : loop_(loop),
      listener_(loop, listener.Release()),
      pause_(loop),
      users_(users),
      answer_(std::move(answer)) {
  listener_.non_blocking(true);
  Accept();
}

LocalServer::~LocalServer() {
  for (const auto& [number, connection] : connections_) connection->Cut();
}

void LocalServer::Accept() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    UniqueFd socket(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid() && OutOfDescriptors(errno)) return PauseAccepting();
    if (socket.valid()) Take(std::move(socket));
    Accept();
  });
}

void LocalServer::PauseAccepting() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](std::error_code error) {
    if (!error) Accept();
  });
}

void LocalServer::Take(UniqueFd socket) {
  absl::StatusOr<PeerUser> peer = UserOfPeer(socket.get());
  if (!peer.ok()) return;
  const auto his = of_user_.find(peer->uid);
  if (peer->uid != 0 && his != of_user_.end() && his->second >= kMostOfUser) {
    return RefuseAt(socket.get(),
                    absl::StrCat("too many connections of ", NameOf(peer->uid), " (", kMostOfUser,
                                 "): end some that wait or follow jobs"));
  }
  if (connections_.size() >= kMostConnections && !MakeRoom()) {
    return RefuseAt(socket.get(), absl::StrCat("too many connections to this host's hlaunchd (",
                                               kMostConnections, "); try again later"));
  }
  ++of_user_[peer->uid];
  const uint64_t number = next_++;
  const auto connection =
      std::make_shared<Connection>(*this, number, std::move(socket), *std::move(peer));
  connections_[number] = connection;
  connection->Read();
}

// Gives the user's name if a connection of that user has found it out, else the number.
std::string LocalServer::NameOf(uid_t uid) const {
  for (const auto& [number, connection] : connections_) {
    if (connection->uid() == uid && !connection->name().empty()) {
      return absl::StrCat("user ", connection->name());
    }
  }
  return absl::StrCat("the user with number ", uid);
}

// Removes the connection that has been idle for longest. False: every connection has a question.
bool LocalServer::MakeRoom() {
  std::optional<Instant> longest;
  uint64_t number = 0;
  for (const auto& [candidate, connection] : connections_) {
    const std::optional<Instant> idle = connection->idle_since();
    if (!idle || (longest && *longest <= *idle)) continue;
    longest = idle;
    number = candidate;
  }
  if (longest) Forget(number);
  return longest.has_value();
}

void LocalServer::Forget(uint64_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  const auto connection = std::move(found->second);
  connections_.erase(found);
  const auto his = of_user_.find(connection->uid());
  if (--his->second == 0) of_user_.erase(his);
  connection->Cut();
}

absl::StatusOr<UniqueFd> ListenLocally(const std::string& path) {
  const auto fail = [&](const char* what) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen at ", path, ": ", what, ": ", std::strerror(errno)));
  };
  const sockaddr_un address = AddressOf(path);
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return fail("socket");
  }
  if (SomebodyListens(address)) {
    return absl::AlreadyExistsError(absl::StrCat("another hlaunchd listens at ", path));
  }
  // systemd makes the folder. Without systemd it may be missing.
  ::mkdir(std::filesystem::path(path).parent_path().c_str(), 0755);
  ::unlink(path.c_str());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return fail("socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail("bind");
  }
  if (::chmod(path.c_str(), 0666) != 0) return fail("chmod");
  if (::listen(socket.get(), kBacklog) != 0) return fail("listen");
  return socket;
}

}  // namespace hlaunch
