// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/socket_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rendezvous/net/socket/accept.h"
#include "tests/rendezvous/no_descriptors.h"
#include "tests/rendezvous/raw_connection.h"

namespace hlaunch {
namespace {

// Echoes all bytes. Does not read from a connection that has more than `most` unsent bytes.
class Echo final : public SocketLoop::Owner {
 public:
  explicit Echo(size_t most = 1 << 20)
      : most_(most),
        loop_(*this, *Listen("127.0.0.1", 0), {.name = "echo", .thread_name = "echo"}) {
    EXPECT_TRUE(loop_.Start().ok());
  }
  ~Echo() override { loop_.Stop(); }

  SocketLoop& loop() { return loop_; }
  uint16_t port() const { return loop_.port(); }

  // Returns the result of `ask` on the loop's thread.
  template <typename Ask>
  auto On(Ask ask) {
    std::promise<decltype(ask())> answer;
    loop_.Post([&] { answer.set_value(ask()); });
    return answer.get_future().get();
  }

  void OnAccepted(UniqueFd fd) override { Serve(std::move(fd)); }
  Instant OnTurnEnd() override {
    ++turns_;
    return Instant::max();
  }

  void Serve(UniqueFd fd) {
    auto peer = std::make_unique<Peer>(*this, std::move(fd));
    ASSERT_TRUE(peer->Join(loop_, /*reads=*/true).ok());
    peers_.emplace(peer.get(), std::move(peer));
  }

  int turns() const { return turns_; }

  class Peer final : public LoopSocket {
   public:
    Peer(Echo& echo, UniqueFd fd) : LoopSocket(std::move(fd), &echo.unsent_), echo_(echo) {}
    void OnBytes(absl::string_view bytes) override {
      out().text().append(bytes.data(), bytes.size());
      out().Recount();
      if (Send()) return AwaitMore();
      OnEnd(errno);
    }
    void OnRoom() override { AwaitMore(); }
    void OnEnd(int error) override {
      echo_.ends_.push_back(error);
      echo_.peers_.erase(this);
    }
    void OnReset() override { OnEnd(ECONNRESET); }

   private:
    void AwaitMore() {
      echo_.most_seen_ = std::max(echo_.most_seen_, echo_.unsent_);
      AwaitBytes(out().size() <= echo_.most_);
    }
    Echo& echo_;
  };

  // These belong to the loop's thread.
  size_t unsent_ = 0;
  size_t most_seen_ = 0;  // The largest unsent_.
  std::vector<int> ends_;

 private:
  const size_t most_;
  std::atomic<int> turns_ = 0;
  SocketLoop loop_;
  std::map<Peer*, std::unique_ptr<Peer>> peers_;
};

// Makes a round trip: then the loop has done what it was told before.
bool Answers(RawConnection& connection) {
  connection.Send("ping");
  return connection.Receive(4) == "ping";
}

TEST(SendBuffer, ThatIsEmptyKeepsNoLargeMemory) {
  SendBuffer buffer;
  buffer.text() = std::string(1 << 20, 'x');
  buffer.Clear();
  EXPECT_LE(buffer.text().capacity(), 4U << 10);
}

TEST(SocketLoop, ServesManyConnections) {
  Echo echo;
  RawConnection first(echo.port()), second(echo.port());
  first.Send("one");
  second.Send("two");
  EXPECT_EQ(second.Receive(3), "two");
  EXPECT_EQ(first.Receive(3), "one");
}

TEST(SocketLoop, TakesNoTurnWhileNothingHappens) {
  Echo echo;
  RawConnection client(echo.port());
  EXPECT_TRUE(Answers(client));
  const int before = echo.On([&echo] { return echo.turns(); });
  EXPECT_EQ(echo.On([&echo] { return echo.turns(); }), before + 1);  // The turn of the first call.
}

TEST(SocketLoop, GivesAllBytesOfAPeerThatHasGoneAndThenItsEnd) {
  Echo echo;
  RawConnection client(echo.port());
  const std::string bytes(3 << 20, 'x');  // More than one turn reads.
  std::thread sender([&] {
    client.Send(bytes);
    ::shutdown(client.fd(), SHUT_WR);
  });
  EXPECT_TRUE(client.Receive(bytes.size()) == bytes);
  sender.join();
  EXPECT_TRUE(client.Ends());
  EXPECT_THAT(echo.On([&echo] { return echo.ends_; }), testing::ElementsAre(0));
}

TEST(SocketLoop, TellsOfAPeerThatBrokeWhileItWasNotRead) {
  Echo echo(0);
  RawConnection other(echo.port());
  {
    RawConnection client(echo.port());
    const std::string bytes(1 << 20, 'x');
    while (echo.On([&echo] { return echo.unsent_; }) == 0) {  // Until then the loop still reads it.
      ::send(client.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }  // Closes with bytes unread, so with a reset.
  while (echo.On([&echo] { return echo.ends_.empty(); })) EXPECT_TRUE(Answers(other));
  EXPECT_NE(echo.On([&echo] { return echo.ends_[0]; }), 0);
  EXPECT_EQ(echo.On([&echo] { return echo.unsent_; }), 0u);  // Its buffer no longer counts.
}

TEST(SocketLoop, ASlowReaderIsServedInOrderAndHoldsUpNobody) {
  constexpr size_t kMost = 64 << 10;
  Echo echo(kMost);
  RawConnection slow(echo.port()), quick(echo.port());
  std::string bytes(16 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i / 4096);
  std::thread sender([&] { slow.Send(bytes); });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Answers(quick));
  EXPECT_TRUE(slow.Receive(bytes.size()) == bytes);
  sender.join();
  // Bytes of one read, and sent bytes not dropped yet, come on top.
  EXPECT_LE(echo.On([&echo] { return echo.most_seen_; }), 2 * (kMost + (256 << 10)));
  EXPECT_EQ(echo.On([&echo] { return echo.unsent_; }), 0u);
}

TEST(SocketLoop, WaitsWithoutDescriptorsAndDoesNotSpin) {
  Echo echo;
  RawConnection first(echo.port());
  EXPECT_TRUE(Answers(first));
  RawConnection late(UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  {
    const NoDescriptors none;
    late.Connect(echo.port());
    late.Send("late");
    const int before = echo.turns();
    pollfd entry{late.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 300), 0);  // It waits in the kernel's queue.
    EXPECT_LT(echo.turns() - before, 20);  // Two turns for each pause.
    EXPECT_TRUE(Answers(first));
  }
  EXPECT_EQ(late.Receive(4), "late");
}

TEST(SocketLoop, DropsWhatIsNotAccepted) {
  Echo echo;
  const auto queued = echo.On([&echo] {  // The loop accepts nothing while this runs.
    auto client = std::make_unique<RawConnection>(echo.port());
    echo.loop().DropUnaccepted();
    return client;
  });
  EXPECT_TRUE(queued->Ends());
  RawConnection next(echo.port());
  EXPECT_TRUE(Answers(next));
}

TEST(SocketLoop, SendsAtOnceOnWhatItAccepts) {
  class Once final : public SocketLoop::Owner {
   public:
    void OnAccepted(UniqueFd fd) override { came.set_value(std::move(fd)); }
    Instant OnTurnEnd() override { return Instant::max(); }
    std::promise<UniqueFd> came;
  } once;
  SocketLoop loop(once, *Listen("127.0.0.1", 0), {.name = "once", .thread_name = "once"});
  ASSERT_TRUE(loop.Start().ok());
  RawConnection other(loop.port());
  const UniqueFd accepted = once.came.get_future().get();
  loop.Stop();
  int found = 0;
  socklen_t size = sizeof(found);
  ASSERT_EQ(::getsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &found, &size), 0);
  EXPECT_NE(found, 0);
}

TEST(SocketLoop, CannotStartWithoutDescriptors) {
  class Nobody final : public SocketLoop::Owner {
    void OnAccepted(UniqueFd) override {}
    Instant OnTurnEnd() override { return Instant::max(); }
  } nobody;
  SocketLoop loop(nobody, std::nullopt, {.name = "nobody", .thread_name = "nobody"});
  const NoDescriptors none;
  EXPECT_TRUE(absl::IsResourceExhausted(loop.Start()));
}

TEST(SendBuffer, CountsItsBytesIntoTheSumOfAll) {
  size_t sum = 0;
  {
    SendBuffer first(&sum), second(&sum);
    first.text() = "12345";
    first.Recount();
    second.text() = "678";
    second.Recount();
    EXPECT_EQ(sum, 8u);
    first.Clear();
    EXPECT_EQ(sum, 3u);
  }
  EXPECT_EQ(sum, 0u);
}

TEST(SendBuffer, GivesItsMemoryBackOnceItIsEmpty) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  UniqueFd near(ends[0]), far(ends[1]);
  SendBuffer buffer;
  buffer.text().assign(1 << 20, 'x');
  std::string read(1 << 20, '\0');
  for (size_t left = read.size(); left > 0;) {
    ASSERT_TRUE(buffer.SendTo(near.get()));
    left -= static_cast<size_t>(::recv(far.get(), read.data(), left, 0));
    EXPECT_LE(buffer.text().size(), std::max<size_t>(2 * buffer.size(), 1));
  }
  EXPECT_LE(buffer.text().capacity(), size_t{4} << 10);
  far = UniqueFd();
  buffer.text() = "more";
  EXPECT_FALSE(buffer.SendTo(near.get()));
}

TEST(AcceptConnections, TellsWhyItEnds) {
  const ListeningSocket listener = *Listen("127.0.0.1", 0);
  RawConnection first(listener.port), second(listener.port), third(listener.port);
  int came = 0;
  const auto count = [&came](UniqueFd) { ++came; };
  EXPECT_EQ(AcceptConnections(listener.fd.get(), 2, count), 0);
  {
    const NoDescriptors none;
    EXPECT_EQ(AcceptConnections(listener.fd.get(), 2, count), EMFILE);
  }
  EXPECT_EQ(AcceptConnections(listener.fd.get(), 2, count), EAGAIN);
  EXPECT_EQ(came, 3);
}

}  // namespace
}  // namespace hlaunch
