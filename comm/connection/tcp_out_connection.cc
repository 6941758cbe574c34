// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "comm/connection/tcp_connection.h"
#include "comm/connection/tcp_stream.h"

namespace hlaunch {
namespace {

using namespace tcp;

class TcpOutConnection : public OutConnection {
 public:
  TcpOutConnection(UniqueFd socket, int streams, OpenStream open)
      : socket_(std::move(socket)),
        stream_(socket_.get()),
        streams_(std::min(streams, kMostStreams)),
        open_(std::move(open)) {
    LimitUnsent(socket_.get());
  }

  int fd() const override { return socket_.get(); }
  std::span<const int> stream_fds() const override { return stream_fds_; }

  bool Push(Outgoing* message) override {
    const size_t size = message->bytes.size();
    if (!in_message_) {
      used_ = size >= kStripedFrom ? 1 + ReadyStreams() : 1;
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
  bool Arm() override { return true; }  // Push stopped at EAGAIN, so an event will follow.

  // A notice cannot be sent in the middle of a frame. Then a rank that waits for this rank reads
  // the notice from the connection in the other direction, on which it is the sender.
  void SendNotice(const Notice& notice) override {
    if (in_message_ && sent_[0] != 0) return;
    struct {
      FrameHead head;
      NoticePacket packet;
    } frame{{0, {kNoticeVerb}, sizeof(NoticePacket)}, Pack(notice)};
    ::send(socket_.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::vector<Notice> ReadNotices() override {
    std::vector<Notice> notices;
    bool ended = false;
    while (reader_.Read(stream_, &ended)) notices.push_back(Unpack(reader_.Get()));
    if (ended) notices.push_back({Notice::kDisconnected});
    return notices;
  }

  void Withdraw() override {}

 private:
  // Sends the head and the first part, on the first stream.
  bool PushFirst(const Outgoing& message) {
    FrameHead head{message.number, message.call, message.bytes.size()};
    head.call.unused = static_cast<uint8_t>(used_ - 1);
    const size_t end = PartBegin(message.bytes.size(), used_, 1);
    size_t& sent = sent_[0];
    const size_t head_done = std::min(sent, sizeof head), done = sent - head_done;
    // sendmsg does not write to these bytes.
    auto* const data = const_cast<std::byte*>(message.bytes.data());
    iovec parts[2] = {{reinterpret_cast<std::byte*>(&head) + head_done, sizeof head - head_done},
                      {data + done, end - done}};
    sent += SendSome(socket_.get(), parts).size;  // ReadNotices finds out if the stream is broken.
    return sent == sizeof head + end;
  }

  bool PushPart(const Outgoing& message, int stream) {
    const size_t size = message.bytes.size();
    const size_t begin = PartBegin(size, used_, stream), end = PartBegin(size, used_, stream + 1);
    size_t& sent = sent_[static_cast<size_t>(stream)];
    iovec part{const_cast<std::byte*>(message.bytes.data()) + begin + sent, end - begin - sent};
    const SendResult now = SendSome(extra_[static_cast<size_t>(stream) - 1].fd.get(), {&part, 1});
    if (now.broken) ::shutdown(socket_.get(), SHUT_RDWR);  // Both ends notice this.
    sent += now.size;
    return sent == end - begin;
  }

  // Returns how many further streams have proved themselves, counted up to the first one that has
  // not. Opens the streams at the first call.
  int ReadyStreams() {
    if (open_ != nullptr) {
      for (int stream = 1; stream < streams_; ++stream) {
        ExtraStream extra = open_(stream);
        if (!extra.fd.valid()) break;
        LimitUnsent(extra.fd.get());
        stream_fds_.push_back(extra.fd.get());
        extra_.push_back(std::move(extra));
      }
      open_ = nullptr;
    }
    int ready = 0;
    for (ExtraStream& extra : extra_) {
      if (extra.greet != nullptr && !extra.greet(extra.fd.get())) return ready;
      extra.greet = nullptr;
      ++ready;
    }
    return ready;
  }

  const UniqueFd socket_;
  ReadAheadStream stream_;
  const int streams_;
  OpenStream open_;  // Null once the streams have been opened.
  std::vector<ExtraStream> extra_;
  std::vector<int> stream_fds_;
  // The message that Push has begun to send.
  bool in_message_ = false;
  int used_ = 1;              // The number of streams that carry the message.
  std::vector<size_t> sent_;  // Bytes sent, by stream. The first stream counts the head, too.
  RecordReader<NoticePacket> reader_;
};

}  // namespace

std::unique_ptr<OutConnection> MakeTcpOutConnection(UniqueFd socket, int streams, OpenStream open) {
  return std::make_unique<TcpOutConnection>(std::move(socket), streams, std::move(open));
}

}  // namespace hlaunch
