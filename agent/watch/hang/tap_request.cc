// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/tap_request.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/local/stream_protocol.hpp"
#include "asio/post.hpp"
#include "asio/read.hpp"
#include "asio/steady_timer.hpp"
#include "asio/write.hpp"

namespace hlaunch {
namespace {

constexpr size_t kMaxAnswer = 8 << 20;

}  // namespace

struct TapRequest::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, std::function<void(absl::StatusOr<std::string>)> the_done)
      : socket(loop), timer(loop), done(std::move(the_done)) {}

  void Begin(asio::io_context& loop, const std::string& path, const std::string& handler,
             Duration limit) {
    request = absl::StrCat(handler.empty() ? "GET" : "POST", " /handler/", handler,
                           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                           "Connection: close\r\n\r\n");
    const absl::Status connected = Connect(path);
    if (!connected.ok()) {
      asio::post(loop, [self = shared_from_this(), connected] { self->End(connected); });
      return;
    }
    timer.expires_after(limit);
    timer.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
      if (!cancelled) self->End(absl::DeadlineExceededError("no answer in time"));
    });
    asio::async_write(socket, asio::buffer(request),
                      [self = shared_from_this()](const asio::error_code& failed, size_t) {
                        if (failed) return self->End(absl::UnavailableError(failed.message()));
                        self->Read();
                      });
  }

  // Never waits: a stopped server accepts only a few connections.
  absl::Status Connect(const std::string& path) {
    asio::error_code error;
    socket.open(asio::local::stream_protocol(), error);
    if (!error) socket.non_blocking(true, error);
    if (error) return absl::UnavailableError(error.message());
    const asio::local::stream_protocol::endpoint server(path);
    if (::connect(socket.native_handle(), server.data(), static_cast<socklen_t>(server.size())) ==
        0) {
      return absl::OkStatus();
    }
    if (errno == EAGAIN) return absl::DeadlineExceededError("too many wait for an answer");
    return absl::UnavailableError(std::strerror(errno));
  }

  void Read() {
    asio::async_read(socket, asio::dynamic_buffer(answer, kMaxAnswer), asio::transfer_all(),
                     [self = shared_from_this()](const asio::error_code&, size_t) {
                       self->End(BodyOf(self->answer));
                     });
  }

  void End(absl::StatusOr<std::string> result) {
    if (!done) return;
    const auto tell = std::exchange(done, nullptr);
    GiveUp();
    tell(std::move(result));
  }

  void GiveUp() {
    done = nullptr;
    timer.cancel();
    asio::error_code ignored;
    socket.close(ignored);
  }

  asio::local::stream_protocol::socket socket;
  asio::steady_timer timer;
  std::function<void(absl::StatusOr<std::string>)> done;  // Empty once it was called.
  std::string request;
  std::string answer;
};

TapRequest::TapRequest(asio::io_context& loop, const std::string& socket,
                       const std::string& handler,
                       std::function<void(absl::StatusOr<std::string>)> done, Duration limit)
    : state_(std::make_shared<State>(loop, std::move(done))) {
  state_->Begin(loop, socket, handler, limit);
}

TapRequest::~TapRequest() { state_->GiveUp(); }

absl::StatusOr<std::string> BodyOf(absl::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  if (!absl::StartsWith(answer, "HTTP/1.1 ") || end == answer.npos) {
    return absl::InvalidArgumentError("the answer is not HTTP");
  }
  const absl::string_view status = answer.substr(9, 3);
  if (status != "200") return absl::NotFoundError(absl::StrCat("the answer has status ", status));
  if (answer.size() >= kMaxAnswer) return absl::ResourceExhaustedError("the answer is too long");
  return std::string(answer.substr(end + 4));
}

}  // namespace hlaunch
