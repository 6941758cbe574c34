// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/job_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/write.hpp"
#include "launcher/job/socket/socket_name.h"
#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"
#include "proto/cluster/frame.h"
#include "rendezvous/net/socket/accept.h"

namespace hlaunch {
namespace {

constexpr int kBacklog = 16;
constexpr int kMostRefused = 100;                     // Connections before a pause.
constexpr Duration kTime = std::chrono::seconds(10);  // For the question, and to take the answer.
constexpr size_t kMaxQuestion = 1 << 20;

absl::Status ElsewhereDecided() {
  return absl::FailedPreconditionError("this process does not decide the job");
}

}  // namespace

// The connection of one command. It brings one question and takes the answer. Belongs to the
// server. Handlers that wait in the loop share it.
class JobServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(JobServer& server, uint64_t number, UniqueFd socket)
      : server_(&server),
        number_(number),
        loop_(server.loop_),
        socket_(server.loop_, socket.Release()),
        limit_(server.loop_) {}

  void Begin() {
    Limit(kTime);
    Read();
  }

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

  void Limit(Duration time) {
    limit_.expires_after(time);
    limit_.async_wait([self = shared_from_this()](std::error_code error) {
      if (!error) self->End();
    });
  }

  void Read() {
    socket_.async_read_some(asio::buffer(bytes_),
                            [self = shared_from_this()](std::error_code error, size_t size) {
                              if (self->server_ == nullptr) return;
                              if (error) return self->End();
                              self->Took(size);
                            });
  }

  void Took(size_t size) {
    const auto frames = frames_.Take(absl::string_view(bytes_, size));
    if (!frames.ok()) return End();
    if (frames->empty()) return Read();
    absl::StatusOr<Envelope> question = DecodeEnvelope(frames->front());
    if (!question.ok() || question->ask.empty()) return End();
    question_ = *std::move(question);
    limit_.cancel();
    Answer();
  }

  void Answer() {
    const JobServer::Answers& answers = server_->answers_;
    if (question_.ask == "who") return Say(ToJson(answers.here()));
    if (question_.ask == "meeting") {
      const absl::StatusOr<JobMeeting> meeting = answers.meeting();
      return meeting.ok() ? Say(ToJson(*meeting)) : Refuse(meeting.status());
    }
    if (question_.ask == "status") {
      const std::optional<JobStatus> status = answers.status();
      return status ? Say(ToJson(*status)) : Refuse(ElsewhereDecided());
    }
    if (question_.ask == "ranks") return AskRanks();
    if (question_.ask == "end") {
      const absl::StatusOr<EndRequest> request = ReadEndRequest(question_.body);
      const absl::Status begun = request.ok() ? answers.end(request->signal) : request.status();
      return begun.ok() ? Say(nlohmann::json::object()) : Refuse(begun);
    }
    Refuse(absl::UnimplementedError(
        absl::StrCat("this job's hlaunch does not know the question '", question_.ask, "'")));
  }

  void AskRanks() {
    const absl::StatusOr<RankQuestion> question = ReadRankQuestion(question_.body);
    if (!question.ok()) return Refuse(question.status());
    const auto done = [&loop = loop_, weak = weak_from_this()](JobAnswer answer) {
      asio::post(loop, [weak, answer = std::move(answer)] {
        const std::shared_ptr<Connection> self = weak.lock();
        if (self != nullptr) self->Say(ToJson(answer));
      });
    };
    Limit(question->patience + kTime);
    const absl::Status begun = server_->answers_.ranks(*question, done);
    if (!begun.ok()) Refuse(begun);
  }

  void Refuse(const absl::Status& why) { Write(ErrorTo(question_, why)); }
  void Say(nlohmann::json body) { Write(AnswerTo(question_, std::move(body))); }

  void Write(const Envelope& answer) {
    if (server_ == nullptr) return;
    std::string json = EncodeEnvelope(answer);
    if (json.size() > kMaxClusterFrame) {
      json = EncodeEnvelope(
          ErrorTo(question_, absl::ResourceExhaustedError("the answer is too long; ask for less")));
    }
    writing_ = EncodeFrameOf(json);
    Limit(kTime);
    asio::async_write(socket_, asio::buffer(writing_),
                      [self = shared_from_this()](std::error_code, size_t) { self->End(); });
  }

  JobServer* server_;  // Null once Cut was called.
  const uint64_t number_;
  asio::io_context& loop_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer limit_;
  FrameReader frames_{kMaxQuestion};
  Envelope question_;
  char bytes_[4 << 10];
  std::string writing_;
};

absl::StatusOr<std::unique_ptr<JobServer>> JobServer::Open(asio::io_context& loop,
                                                           Answers answers) {
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  const AbstractAddress address = AddressOf(NewJobSocketName(::geteuid(), ::getpid(), number));
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid() || ::bind(listener.get(), address.get(), address.length) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no socket for this user's commands: ", std::strerror(errno)));
  }
  return std::unique_ptr<JobServer>(new JobServer(loop, std::move(listener), std::move(answers)));
}

JobServer::JobServer(asio::io_context& loop, UniqueFd listener, Answers answers)
    : loop_(loop), listener_(loop, listener.Release()), pause_(loop), answers_(std::move(answers)) {
  Accept();
}

JobServer::~JobServer() {
  for (const auto& [number, connection] : connections_) connection->Cut();
}

void JobServer::Accept() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    UniqueFd socket(
        ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool full = !socket.valid() && OutOfDescriptors(errno);
    if (socket.valid() && !Take(std::move(socket))) ++refused_;
    if (full || refused_ == kMostRefused) return AcceptLater();
    Accept();
  });
}

// Everybody on this host may connect, so a stranger could keep this loop busy; and with a pause
// after each of his connections he would keep this user's commands waiting.
void JobServer::AcceptLater() {
  refused_ = 0;
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](std::error_code error) {
    if (!error) Accept();
  });
}

// False: the connection is refused.
bool JobServer::Take(UniqueFd socket) {
  const std::optional<ucred> peer = CredentialsOfPeer(socket.get());
  if (!peer || (peer->uid != ::geteuid() && peer->uid != 0)) return false;
  if (connections_.size() >= kMostConnections) return false;
  const uint64_t number = next_++;
  const auto connection = std::make_shared<Connection>(*this, number, std::move(socket));
  connections_[number] = connection;
  connection->Begin();
  return true;
}

void JobServer::Forget(uint64_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  connection->Cut();
}

}  // namespace hlaunch
