// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/tcp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hlaunch {
namespace {

// A verb of no call: the frame holds news.
constexpr Verb kNewsVerb{0xff};
constexpr int kMostUnsent = 512 << 10;

// Collects a record of fixed size from a stream that gives it in parts.
template <typename Record>
class RecordReader {
 public:
  // What recv gave is added; true once the record is whole. `ended` is set at the stream's end.
  bool Read(int socket, bool* ended) {
    while (size_ < sizeof(Record)) {
      const ssize_t got = ::recv(socket, bytes_ + size_, sizeof(Record) - size_, MSG_DONTWAIT);
      if (got > 0) {
        size_ += got;
      } else if (got < 0 && errno == EINTR) {
        continue;
      } else {
        *ended = *ended || got == 0 || errno != EAGAIN;
        return false;
      }
    }
    return true;
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

class TcpOutLink : public OutLink {
 public:
  explicit TcpOutLink(UniqueFd socket) : socket_(std::move(socket)) {
    // What waits in the kernel, beyond what the network has taken, stays in the cache.
    const int most = kMostUnsent;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
  }

  int fd() const override { return socket_.get(); }

  bool Push(Outgoing* message) override {
    FrameHead head{message->number, message->call, message->bytes.size()};
    const size_t whole = sizeof head + message->bytes.size();
    while (offset_ < whole) {
      const size_t head_done = std::min(offset_, sizeof head);
      const size_t bytes_done = offset_ - head_done;
      // sendmsg does not write through it.
      auto* const data = const_cast<std::byte*>(message->bytes.data());
      iovec parts[2] = {{reinterpret_cast<std::byte*>(&head) + head_done, sizeof head - head_done},
                        {data + bytes_done, message->bytes.size() - bytes_done}};
      msghdr what{};
      what.msg_iov = parts;
      what.msg_iovlen = 2;
      const ssize_t sent = ::sendmsg(socket_.get(), &what, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return false;  // Full; or broken, which Hear finds.
      offset_ += sent;
    }
    offset_ = 0;
    MarkDone(message);
    return true;
  }

  bool Poll() override { return false; }
  bool Settled() const override { return true; }
  bool Arm() override { return true; }  // Push stopped at EAGAIN, so the edge is still to come.

  // In the middle of a frame it cannot be told here; those who wait for this rank hear it on the
  // way that they themselves send on.
  void Tell(const News& news) override {
    if (offset_ != 0) return;
    struct {
      FrameHead head;
      NewsPacket packet;
    } frame{{0, {kNewsVerb}, sizeof(NewsPacket)}, Pack(news)};
    ::send(socket_.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::vector<News> Hear() override {
    std::vector<News> heard;
    bool ended = false;
    while (reader_.Read(socket_.get(), &ended)) heard.push_back(Unpack(reader_.Get()));
    if (ended) heard.push_back({News::kGone});
    return heard;
  }

  void Withdraw() override {}

 private:
  const UniqueFd socket_;
  size_t offset_ = 0;  // In the frame that Push is in the middle of.
  RecordReader<NewsPacket> reader_;
};

class TcpInLink : public InLink {
 public:
  explicit TcpInLink(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }

  const FrameHead* Front() override {
    if (in_front_) return &front_;
    while (!ended_) {
      if (in_news_) {
        if (!packet_.Read(socket_.get(), &ended_)) return nullptr;
        heard_.push_back(Unpack(packet_.Get()));
        in_news_ = false;
      }
      if (!head_.Read(socket_.get(), &ended_)) return nullptr;
      front_ = head_.Get();
      offset_ = 0;
      in_news_ = front_.call.verb == kNewsVerb;
      in_front_ = !in_news_;
      if (in_front_) return &front_;
    }
    return nullptr;
  }

  bool Take(std::span<std::byte> into) override {
    while (offset_ < into.size()) {
      const ssize_t got =
          ::recv(socket_.get(), into.data() + offset_, into.size() - offset_, MSG_DONTWAIT);
      if (got > 0) {
        offset_ += got;
      } else if (got < 0 && errno == EINTR) {
        continue;
      } else {
        ended_ = ended_ || got == 0 || errno != EAGAIN;
        return false;
      }
    }
    in_front_ = false;
    return true;
  }

  bool Arm() override { return true; }  // Reading stopped at EAGAIN.

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
  const UniqueFd socket_;
  RecordReader<FrameHead> head_;
  RecordReader<NewsPacket> packet_;
  FrameHead front_;
  bool in_front_ = false;
  bool in_news_ = false;
  bool ended_ = false;
  uint64_t offset_ = 0;
  std::vector<News> heard_;
};

}  // namespace

std::unique_ptr<OutLink> MakeTcpOutLink(UniqueFd socket) {
  return std::make_unique<TcpOutLink>(std::move(socket));
}

std::unique_ptr<InLink> MakeTcpInLink(UniqueFd socket) {
  return std::make_unique<TcpInLink>(std::move(socket));
}

}  // namespace hlaunch
