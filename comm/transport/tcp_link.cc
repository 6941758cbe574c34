// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/tcp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace hlaunch {
namespace {

// A verb of no call: the frame holds news.
constexpr Verb kNewsVerb{0xff};
constexpr int kMostUnsent = 512 << 10;
constexpr size_t kPartStep = 4096;

// The next bytes of `socket`; 0: none now, or the stream has `ended`.
size_t ReceiveSome(int socket, std::span<std::byte> into, bool* ended) {
  while (true) {
    const ssize_t got = ::recv(socket, into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) continue;
    *ended = *ended || got == 0 || errno != EAGAIN;
    return 0;
  }
}

// A stream that is read a little ahead: a small message costs one call, not one for its head and
// one for its bytes.
class Stream {
 public:
  explicit Stream(int socket) : socket_(socket) {}

  // How many bytes came; fewer than `into` has: no more now. Never stops at a short answer: the
  // stream's end may be right behind, and gives no event of its own.
  size_t Read(std::span<std::byte> into, bool* ended) {
    size_t done = TakeAhead(into);
    while (done < into.size()) {
      const std::span<std::byte> rest = into.subspan(done);
      const bool ahead = rest.size() < sizeof ahead_;
      const size_t got = ReceiveSome(socket_, ahead ? std::span(ahead_) : rest, ended);
      if (got == 0) return done;
      begin_ = 0;
      end_ = ahead ? got : 0;
      done += ahead ? TakeAhead(rest) : got;
    }
    return done;
  }

 private:
  size_t TakeAhead(std::span<std::byte> into) {
    const size_t size = std::min(into.size(), end_ - begin_);
    if (size == 0) return 0;
    std::memcpy(into.data(), ahead_ + begin_, size);
    begin_ += size;
    return size;
  }

  const int socket_;
  size_t begin_ = 0, end_ = 0;  // Of what is in `ahead_`.
  std::byte ahead_[sizeof(FrameHead) + 1024];
};

// Collects a record of fixed size from a stream that gives it in parts.
template <typename Record>
class RecordReader {
 public:
  // True once the record is whole. `ended` is set at the stream's end.
  bool Read(Stream& stream, bool* ended) {
    size_ += stream.Read(std::span(bytes_).subspan(size_), ended);
    return size_ == sizeof(Record);
  }
  Record Get() {
    Record record;
    std::memcpy(&record, bytes_, sizeof record);
    size_ = 0;
    return record;
  }

 private:
  size_t size_ = 0;
  std::byte bytes_[sizeof(Record)];
};

// Where part `stream` of a message begins that goes over so many; of the one after the last: its
// end.
size_t PartBegin(size_t size, int streams, int stream) {
  const size_t each = (size / static_cast<size_t>(streams) + kPartStep) / kPartStep * kPartStep;
  return std::min(size, each * static_cast<size_t>(stream));
}

// What went out of several parts. Not all: no room now, or `broken`.
struct Sent {
  size_t size = 0;
  bool broken = false;
};

Sent SendSome(int socket, std::span<iovec> parts) {
  size_t done = 0;
  while (!parts.empty()) {
    if (parts.front().iov_len == 0) {
      parts = parts.subspan(1);
      continue;
    }
    msghdr what{};
    what.msg_iov = parts.data();
    what.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket, &what, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return {done, errno != EAGAIN};
    done += sent;
    for (size_t left = sent; left > 0;) {
      const size_t part = std::min(left, parts.front().iov_len);
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + part;
      parts.front().iov_len -= part;
      left -= part;
      if (parts.front().iov_len == 0 && left > 0) parts = parts.subspan(1);
    }
  }
  return {done};
}

void BoundUnsent(int socket) {
  // What waits in the kernel, beyond what the network has taken, stays in the cache.
  const int most = kMostUnsent;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
}

class TcpOutLink : public OutLink {
 public:
  TcpOutLink(UniqueFd socket, int streams, OpenSide open)
      : socket_(std::move(socket)),
        stream_(socket_.get()),
        streams_(std::min(streams, kMostStreams)),
        open_(std::move(open)) {
    BoundUnsent(socket_.get());
  }

  int fd() const override { return socket_.get(); }
  std::span<const int> side_fds() const override { return side_fds_; }

  bool Push(Outgoing* message) override {
    const size_t size = message->bytes.size();
    if (!in_message_) {
      used_ = size >= kStripedFrom ? 1 + ReadySides() : 1;
      sent_.assign(static_cast<size_t>(used_), 0);
      in_message_ = true;
    }
    bool whole = PushFirst(*message);
    for (int stream = 1; stream < used_; ++stream) whole = PushPart(*message, stream) && whole;
    if (!whole) return false;
    in_message_ = false;
    MarkDone(message);
    return true;
  }

  bool Poll() override { return false; }
  bool Settled() const override { return true; }
  bool Arm() override { return true; }  // Push stopped at EAGAIN, so the edge is still to come.

  // In the middle of a frame it cannot be told here; those who wait for this rank hear it on the
  // way that they themselves send on.
  void Tell(const News& news) override {
    if (in_message_ && sent_[0] != 0) return;
    struct {
      FrameHead head;
      NewsPacket packet;
    } frame{{0, {kNewsVerb}, sizeof(NewsPacket)}, Pack(news)};
    ::send(socket_.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::vector<News> Hear() override {
    std::vector<News> heard;
    bool ended = false;
    while (reader_.Read(stream_, &ended)) heard.push_back(Unpack(reader_.Get()));
    if (ended) heard.push_back({News::kGone});
    return heard;
  }

  void Withdraw() override {}

 private:
  // Its head and the first part.
  bool PushFirst(const Outgoing& message) {
    FrameHead head{message.number, message.call, message.bytes.size()};
    head.call.unused = static_cast<uint8_t>(used_ - 1);
    const size_t end = PartBegin(message.bytes.size(), used_, 1);
    size_t& sent = sent_[0];
    const size_t head_done = std::min(sent, sizeof head), done = sent - head_done;
    // sendmsg does not write through it.
    auto* const data = const_cast<std::byte*>(message.bytes.data());
    iovec parts[2] = {{reinterpret_cast<std::byte*>(&head) + head_done, sizeof head - head_done},
                      {data + done, end - done}};
    sent += SendSome(socket_.get(), parts).size;  // If it is broken, Hear finds it.
    return sent == sizeof head + end;
  }

  bool PushPart(const Outgoing& message, int stream) {
    const size_t size = message.bytes.size();
    const size_t begin = PartBegin(size, used_, stream), end = PartBegin(size, used_, stream + 1);
    size_t& sent = sent_[static_cast<size_t>(stream)];
    iovec part{const_cast<std::byte*>(message.bytes.data()) + begin + sent, end - begin - sent};
    const Sent now = SendSome(sides_[static_cast<size_t>(stream) - 1].fd.get(), {&part, 1});
    if (now.broken) ::shutdown(socket_.get(), SHUT_RDWR);  // So that both ends hear of it.
    sent += now.size;
    return sent == end - begin;
  }

  // How many, from the first on, have said who they are. Opens them where that was not done.
  int ReadySides() {
    if (open_ != nullptr) {
      for (int stream = 1; stream < streams_; ++stream) {
        Side side = open_(stream);
        if (!side.fd.valid()) break;
        BoundUnsent(side.fd.get());
        side_fds_.push_back(side.fd.get());
        sides_.push_back(std::move(side));
      }
      open_ = nullptr;
    }
    int ready = 0;
    for (Side& side : sides_) {
      if (!side.hello.empty()) {
        iovec part{side.hello.data(), side.hello.size()};
        side.hello.erase(0, SendSome(side.fd.get(), {&part, 1}).size);
      }
      if (!side.hello.empty()) return ready;
      ++ready;
    }
    return ready;
  }

  const UniqueFd socket_;
  Stream stream_;
  const int streams_;
  OpenSide open_;  // Until it has been used.
  std::vector<Side> sides_;
  std::vector<int> side_fds_;
  // The message that Push is in the middle of.
  bool in_message_ = false;
  int used_ = 1;
  std::vector<size_t> sent_;  // By stream; the first with the head.
  RecordReader<NewsPacket> reader_;
};

class TcpInLink : public InLink {
 public:
  explicit TcpInLink(UniqueFd socket) : socket_(std::move(socket)), stream_(socket_.get()) {}

  int fd() const override { return socket_.get(); }

  const FrameHead* Front() override {
    if (in_front_) return &front_;
    while (!ended_) {
      if (in_news_) {
        if (!packet_.Read(stream_, &ended_)) return nullptr;
        heard_.push_back(Unpack(packet_.Get()));
        in_news_ = false;
      }
      if (!head_.Read(stream_, &ended_)) return nullptr;
      front_ = head_.Get();
      const int streams = std::exchange(front_.call.unused, 0) + 1;
      if (streams > kMostStreams) {
        ended_ = true;  // No sender of ours.
        return nullptr;
      }
      got_.assign(static_cast<size_t>(streams), 0);
      in_news_ = front_.call.verb == kNewsVerb;
      in_front_ = !in_news_;
      if (in_front_) return &front_;
    }
    return nullptr;
  }

  bool Take(std::span<std::byte> into) override {
    const int streams = static_cast<int>(got_.size());
    bool whole = true;
    for (int stream = 0; stream < streams; ++stream) {
      const size_t begin = PartBegin(into.size(), streams, stream);
      const size_t end = PartBegin(into.size(), streams, stream + 1);
      whole = TakePart(stream, into.subspan(begin, end - begin)) && whole;
    }
    in_front_ = !whole;
    return whole;
  }

  bool AddSide(int stream, UniqueFd fd) override {
    if (stream < 1 || stream >= kMostStreams || sides_[static_cast<size_t>(stream)].valid()) {
      return false;
    }
    sides_[static_cast<size_t>(stream)] = std::move(fd);
    return true;
  }

  bool Arm() override { return true; }  // Front and Take read until EAGAIN.

  void Tell(const News& news) override {
    const NewsPacket packet = Pack(news);
    ::send(socket_.get(), &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::vector<News> Hear() override {
    Front();
    std::vector<News> heard = std::exchange(heard_, {});
    if (ended_) heard.push_back({News::kGone});
    return heard;
  }

 private:
  bool TakePart(int stream, std::span<std::byte> into) {
    size_t& got = got_[static_cast<size_t>(stream)];
    const UniqueFd& side = sides_[static_cast<size_t>(stream)];
    if (stream == 0) {
      got += stream_.Read(into.subspan(got), &ended_);
    } else if (side.valid()) {  // Else it has not come yet.
      while (got < into.size()) {
        const size_t more = ReceiveSome(side.get(), into.subspan(got), &ended_);
        if (more == 0) break;
        got += more;
      }
    }
    return got == into.size();
  }

  const UniqueFd socket_;
  Stream stream_;
  std::array<UniqueFd, kMostStreams> sides_;  // By stream; the first is socket_.
  RecordReader<FrameHead> head_;
  RecordReader<NewsPacket> packet_;
  FrameHead front_;
  bool in_front_ = false;
  bool in_news_ = false;
  bool ended_ = false;
  std::vector<size_t> got_{0};  // Of the message in front, by stream.
  std::vector<News> heard_;
};

}  // namespace

std::unique_ptr<OutLink> MakeTcpOutLink(UniqueFd socket, int streams, OpenSide open) {
  return std::make_unique<TcpOutLink>(std::move(socket), streams, std::move(open));
}

std::unique_ptr<InLink> MakeTcpInLink(UniqueFd socket) {
  return std::make_unique<TcpInLink>(std::move(socket));
}

}  // namespace hlaunch
