// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "comm/connection/tcp_connection.h"
#include "comm/connection/tcp_stream.h"

namespace hlaunch {
namespace {

using namespace tcp;

class TcpInConnection : public InConnection {
 public:
  explicit TcpInConnection(UniqueFd socket) : socket_(std::move(socket)), stream_(socket_.get()) {}

  int fd() const override { return socket_.get(); }

  const FrameHead* Front() override {
    if (in_front_) return &front_;
    while (!ended_) {
      if (in_notice_) {
        if (!packet_.Read(stream_, &ended_)) return nullptr;
        notices_.push_back(Unpack(packet_.Get()));
        in_notice_ = false;
      }
      if (!head_.Read(stream_, &ended_)) return nullptr;
      front_ = head_.Get();
      const int streams = std::exchange(front_.call.unused, 0) + 1;
      if (streams > kMostStreams) {
        ended_ = true;  // The sender is not a rank of this version.
        return nullptr;
      }
      got_.assign(static_cast<size_t>(streams), 0);
      in_notice_ = front_.call.verb == kNoticeVerb;
      in_front_ = !in_notice_;
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

  bool AddStream(int stream, UniqueFd fd) override {
    if (stream < 1 || stream >= kMostStreams || extra_[static_cast<size_t>(stream)].valid()) {
      return false;
    }
    extra_[static_cast<size_t>(stream)] = std::move(fd);
    return true;
  }

  // Front and Take read until EAGAIN, and may have read a notice or the end on the way.
  bool Arm() override { return notices_.empty() && (!ended_ || told_end_); }

  void SendNotice(const Notice& notice) override {
    const NoticePacket packet = Pack(notice);
    ::send(socket_.get(), &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::vector<Notice> ReadNotices() override {
    Front();
    std::vector<Notice> notices = std::exchange(notices_, {});
    if (ended_) notices.push_back({Notice::kDisconnected});
    told_end_ = ended_;
    return notices;
  }

 private:
  bool TakePart(int stream, std::span<std::byte> into) {
    size_t& got = got_[static_cast<size_t>(stream)];
    const UniqueFd& extra = extra_[static_cast<size_t>(stream)];
    if (stream == 0) {
      got += stream_.Read(into.subspan(got), &ended_);
    } else if (extra.valid()) {  // If not valid, the stream has not been accepted yet.
      while (got < into.size()) {
        const size_t more = ReceiveSome(extra.get(), into.subspan(got), &ended_);
        if (more == 0) break;
        got += more;
      }
    }
    return got == into.size();
  }

  const UniqueFd socket_;
  ReadAheadStream stream_;
  std::array<UniqueFd, kMostStreams> extra_;  // By stream. The first stream is `socket_` instead.
  RecordReader<FrameHead> head_;
  RecordReader<NoticePacket> packet_;
  FrameHead front_;
  bool in_front_ = false;
  bool in_notice_ = false;
  bool ended_ = false;
  bool told_end_ = false;       // ReadNotices has told that it ended.
  std::vector<size_t> got_{0};  // Bytes read of the message at Front, by stream.
  std::vector<Notice> notices_;
};

}  // namespace

std::unique_ptr<InConnection> MakeTcpInConnection(UniqueFd socket) {
  return std::make_unique<TcpInConnection>(std::move(socket));
}

}  // namespace hlaunch
