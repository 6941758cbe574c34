// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/notice/drain_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/ip/address.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/read.hpp"
#include "asio/steady_timer.hpp"
#include "asio/write.hpp"
#include "proto/base/clock.h"

namespace hlaunch {
namespace {

using absl::string_view;
using asio::ip::tcp;

constexpr int kTurnsOfUrl = 5;
constexpr Duration kUrlLimit = std::chrono::seconds(2);
constexpr size_t kMostBytes = 4096;
constexpr size_t kReasonBytes = 300;

// The first line of `text`, made safe to print.
std::string FirstLine(string_view text) {
  const string_view line = absl::StripAsciiWhitespace(text.substr(0, text.find_first_of("\r\n")));
  std::string reason(line.substr(0, kReasonBytes));
  for (char& letter : reason) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(letter))) letter = ' ';
  }
  return reason;
}

// The reason in the file; empty if there is no file. The read never waits, not even for a pipe.
std::string ReadNoticeFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ::access(path.c_str(), F_OK) == 0 ? absl::StrCat(path, " is there") : "";
  std::array<char, kMostBytes> bytes;
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  ::close(fd);
  std::string reason = FirstLine(string_view(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0));
  return reason.empty() ? absl::StrCat(path, " is there") : reason;
}

// One request to a URL. It keeps itself alive until it is done or its time is over. An answer that
// says neither is not reported.
class Look : public std::enable_shared_from_this<Look> {
 public:
  using Done = std::function<void(std::string reason)>;

  Look(asio::io_context& loop, const NoticeUrl& url, Done done)
      : socket_(loop),
        limit_(loop),
        done_(std::move(done)),
        at_(asio::ip::make_address(url.address), url.port),
        // Google's service requires the header. HTTP/1.0 makes the answer come in one piece.
        request_(
            absl::StrCat("GET ", url.target, " HTTP/1.0\r\nHost: ",
                         at_.address().is_v6() ? absl::StrCat("[", url.address, "]") : url.address,
                         "\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\r\n")) {}

  void Start() {
    limit_.expires_after(kUrlLimit);
    limit_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->Close();
    });
    socket_.async_connect(at_, [self = shared_from_this()](const asio::error_code& error) {
      return error ? self->Close() : self->Ask();
    });
  }

 private:
  void Ask() {
    asio::async_write(socket_, asio::buffer(request_),
                      [self = shared_from_this()](const asio::error_code& error, size_t) {
                        return error ? self->Close() : self->Read();
                      });
  }

  void Read() {
    asio::async_read(socket_, asio::buffer(answer_),
                     [self = shared_from_this()](const asio::error_code& error, size_t got) {
                       const bool whole = !error || error == asio::error::eof;
                       if (whole) self->Tell(string_view(self->answer_.data(), got));
                       self->Close();
                     });
  }

  void Tell(string_view answer) {
    if (std::optional<std::string> reason = ReadNotice(answer)) done_(*std::move(reason));
  }

  void Close() {
    asio::error_code ignored;
    socket_.close(ignored);
    limit_.cancel();
  }

  tcp::socket socket_;
  asio::steady_timer limit_;
  const Done done_;
  const tcp::endpoint at_;
  const std::string request_;
  std::array<char, kMostBytes> answer_;
};

absl::Status NoUrl() {
  return absl::InvalidArgumentError(
      "expected an http URL with an address as its host, such as "
      "http://169.254.169.254/latest/meta-data/spot/instance-action");
}

bool IsPlain(string_view text) {
  for (const char letter : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(letter))) return false;
  }
  return true;
}

// "address", "address:port", "[address]:port".
bool TakeAuthority(string_view text, NoticeUrl& url) {
  string_view port;
  if (absl::ConsumePrefix(&text, "[")) {
    const size_t end = text.find(']');
    if (end == string_view::npos) return false;
    port = text.substr(end + 1);
    text = text.substr(0, end);
  } else if (const size_t colon = text.find(':'); colon != string_view::npos) {
    port = text.substr(colon);
    text = text.substr(0, colon);
  }
  int number = url.port;
  if (!port.empty()) {
    if (!absl::ConsumePrefix(&port, ":") || !absl::SimpleAtoi(port, &number)) return false;
  }
  asio::error_code error;
  asio::ip::make_address(std::string(text), error);
  if (error || number < 1 || number > 65535) return false;
  url.address = std::string(text);
  url.port = static_cast<uint16_t>(number);
  return true;
}

}  // namespace

absl::StatusOr<NoticeUrl> ParseNoticeUrl(string_view text) {
  if (!IsPlain(text) || !absl::ConsumePrefix(&text, "http://")) return NoUrl();
  const size_t slash = std::min(text.find('/'), text.size());
  NoticeUrl url;
  url.target = slash == text.size() ? "/" : std::string(text.substr(slash));
  if (!TakeAuthority(text.substr(0, slash), url)) return NoUrl();
  return url;
}

std::optional<std::string> ReadNotice(string_view answer) {
  if (!absl::StartsWith(answer, "HTTP/1.")) return std::nullopt;
  const size_t space = std::min(answer.find(' '), answer.size());
  const string_view code = answer.substr(std::min(space + 1, answer.size())).substr(0, 3);
  if (code == "404") return "";
  const size_t body = answer.find("\r\n\r\n");
  if (code != "200" || body == string_view::npos) return std::nullopt;
  std::string reason = FirstLine(absl::StripLeadingAsciiWhitespace(answer.substr(body + 4)));
  if (absl::EqualsIgnoreCase(reason, "FALSE") || absl::EqualsIgnoreCase(reason, "NONE")) return "";
  return reason.empty() ? std::string("its cloud says so") : reason;
}

struct DrainWatch::State : std::enable_shared_from_this<DrainWatch::State> {
  State(asio::io_context& the_loop, DrainSources the_sources,
        std::function<void(std::string)> callback, Duration the_turn)
      : loop(the_loop),
        sources(std::move(the_sources)),
        on_change(std::move(callback)),
        turn(the_turn),
        timer(the_loop) {}

  void Turn() {
    if (!sources.file.empty()) of_file = ReadNoticeFile(sources.file);
    if (sources.url && turns++ % kTurnsOfUrl == 0) {
      const auto heard = [weak = weak_from_this()](std::string reason) {
        if (const auto self = weak.lock()) self->Hear(std::move(reason));
      };
      std::make_shared<Look>(loop, *sources.url, heard)->Start();
    }
    Tell();
    timer.expires_after(turn);
    timer.async_wait([weak = weak_from_this()](const asio::error_code& error) {
      const auto self = error ? nullptr : weak.lock();
      if (self) self->Turn();
    });
  }

  void Hear(std::string reason) {
    of_url = std::move(reason);
    Tell();
  }

  void Tell() {
    const std::string& reason = of_file.empty() ? of_url : of_file;
    if (reason == told || !on_change) return;
    told = reason;
    on_change(told);
  }

  asio::io_context& loop;
  const DrainSources sources;
  std::function<void(std::string)> on_change;
  const Duration turn;
  asio::steady_timer timer;
  int turns = 0;
  std::string of_file, of_url, told;
};

DrainWatch::DrainWatch(asio::io_context& loop, DrainSources sources,
                       std::function<void(std::string reason)> on_change, Duration turn)
    : state_(std::make_shared<State>(loop, std::move(sources), std::move(on_change), turn)) {}

DrainWatch::~DrainWatch() {
  state_->timer.cancel();
  state_->on_change = nullptr;
}

void DrainWatch::Begin() {
  if (!state_->sources.file.empty() || state_->sources.url) state_->Turn();
}

}  // namespace hlaunch
