// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/store_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/net/trust/sealed_stream.h"
#include "rendezvous/store/c10d/c10d_protocol.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "rendezvous/store/c10d/store_streams.h"
#include "tests/rendezvous/no_descriptors.h"
#include "tests/rendezvous/raw_connection.h"
#include "tests/rendezvous/store/c10d/c10d_bytes.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<StoreProxy> ProxyTo(uint16_t port, size_t max_unread = 256 << 20,
                                    const std::string& key = "") {
  return *StoreProxy::Start(*Listen("127.0.0.1", 0), {"127.0.0.1", port, max_unread, key});
}

// The same, but it encrypts what it carries.
std::unique_ptr<StoreProxy> SealedProxyTo(uint16_t port, const std::string& secret = "ours",
                                          size_t max_unread = 256 << 20) {
  return ProxyTo(port, max_unread, SealingKey(secret));
}

C10dServerOptions WithKey(const std::string& secret = "ours") {
  C10dServerOptions options;
  options.sealing_key = SealingKey(secret);
  return options;
}

std::string Ping(int64_t nonce) { return SerializeC10dRequest({C10dOp::kPing, {}, {}, nonce}); }

std::string Set(const std::string& key, const std::string& value) {
  return SerializeC10dRequest({C10dOp::kSet, {key}, {value}, 0});
}

std::string Get(const std::string& key) {
  return SerializeC10dRequest({C10dOp::kGet, {key}, {}, 0});
}

std::string Wait(const std::string& key) {
  return SerializeC10dRequest({C10dOp::kWait, {key}, {}, 0});
}

bool Answers(RawConnection& connection) {
  connection.Send(Ping(7));
  return connection.Receive(4) == std::string("\7\0\0\0", 4);
}

std::string Frame(uint32_t stream, absl::string_view bytes) {
  std::string frame;
  PutFrame(&frame, stream, bytes);
  return frame;
}

// The frames in `bytes`, read in pieces of `size`, each as "stream bytes".
std::vector<std::string> Frames(absl::string_view bytes, size_t size) {
  StreamFrameReader reader(/*greeted=*/true);
  std::vector<std::string> seen;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    const absl::Status taken =
        reader.Take(bytes.substr(0, size), [&seen](uint32_t stream, absl::string_view piece) {
          const std::string name = absl::StrCat(stream, " ");
          if (!piece.empty() && !seen.empty() && seen.back().rfind(name, 0) == 0) {
            seen.back().append(piece.data(), piece.size());
          } else {
            seen.push_back(absl::StrCat(name, piece));
          }
        });
    if (!taken.ok()) seen.push_back(taken.ToString());
    if (!taken.ok()) break;
  }
  return seen;
}

TEST(StreamFrameReader, TakesFramesApartHoweverTheyAreSplit) {
  const std::string bytes = absl::StrCat(kStreamsGreeting, Frame(1, "hello"), Frame(70'000, "x"),
                                         Frame(1, ""), Frame(2, "there"));
  for (const size_t size : {1, 2, 3, 8, 11, 1000}) {
    EXPECT_THAT(Frames(bytes, size), ElementsAre("1 hello", "70000 x", "1 ", "2 there")) << size;
  }
  EXPECT_THAT(Frames("\x15hellx", 1), ElementsAre(testing::HasSubstr("INVALID_ARGUMENT")));
  EXPECT_THAT(Frames(kStreamsGreeting, 3), IsEmpty());
}

TEST(StoreProxy, CarriesAllClientsOnOneConnection) {
  const ListeningSocket master = *Listen("127.0.0.1", 0);
  const auto proxy = ProxyTo(master.port);
  pollfd entry{master.fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 100'000), 1);
  RawConnection carried(UniqueFd(::accept(master.fd.get(), nullptr, nullptr)));
  EXPECT_EQ(carried.Receive(kStreamsGreeting.size()), kStreamsGreeting);
  RawConnection first(proxy->port());
  first.Send("one");
  EXPECT_EQ(carried.Receive(11), Frame(1, "one"));
  auto second = std::make_unique<RawConnection>(proxy->port());
  second->Send("two");
  EXPECT_EQ(carried.Receive(11), Frame(2, "two"));
  carried.Send(Frame(2, "2") + Frame(1, "1"));
  EXPECT_EQ(first.Receive(1), "1");
  EXPECT_EQ(second->Receive(1), "2");
  second.reset();
  EXPECT_EQ(carried.Receive(8), Frame(2, ""));
  carried.Send(Frame(2, "late") + Frame(2, "") + Frame(1, ""));
  EXPECT_TRUE(first.Ends());
  EXPECT_EQ(carried.Receive(8), Frame(1, ""));
  EXPECT_EQ(::poll(&entry, 1, 0), 0);  // No other connection has come to the store.
}

// The client that connects first need not speak first.
TEST(StoreProxy, CarriesClientsInWhateverOrderTheySpeak) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection first(proxy->port()), second(proxy->port());
  second.Send(Validate());
  EXPECT_TRUE(Answers(second));
  first.Send(Validate());
  EXPECT_TRUE(Answers(first));
}

TEST(StoreProxy, OneThatWaitsHoldsUpNobody) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection waits(proxy->port()), goes_on(proxy->port()), direct(server->port());
  waits.Send(Validate() + Wait("k") + Get("k") + Ping(1));
  goes_on.Send(Validate());
  EXPECT_TRUE(Answers(goes_on));
  direct.Send(Validate() + Set("k", "v"));
  EXPECT_TRUE(Answers(direct));
  std::string reply(1, static_cast<char>(kC10dStopWaiting));
  PutText(&reply, "v");
  EXPECT_EQ(waits.Receive(reply.size() + 4), reply + std::string("\1\0\0\0", 4));
}

std::string Adds(int count) {
  std::string adds;
  for (int i = 0; i < count; ++i) adds += SerializeC10dRequest({C10dOp::kAdd, {"n"}, {}, 1});
  return adds;
}

// The burst is many times larger than what the store holds of one proxy.
TEST(StoreProxy, ABurstIsAnsweredInOrderWhileOthersAreServed) {
  constexpr int kBurst = 300'000;
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection burst(proxy->port()), quick(proxy->port());
  quick.Send(Validate());
  std::thread sender([&] { burst.Send(Validate() + Adds(kBurst)); });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Answers(quick));
  for (int i = 1; i <= kBurst; ++i) ASSERT_EQ(burst.Receive(8), Int64(i));
  sender.join();
  EXPECT_TRUE(Answers(quick));
}

TEST(StoreProxy, ABurstOfAClientOrProxyThatHasGoneIsExecuted) {
  constexpr int kBurst = 20'000;
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection(proxy->port()).Send(Validate() + Adds(kBurst));
  RawConnection last(server->port());
  last.Send(kStreamsGreeting);
  last.Send(Frame(1, Validate() + Adds(kBurst)));
  ::shutdown(last.fd(), SHUT_WR);
  RawConnection other(server->port());
  other.Send(Validate());
  const std::string read = SerializeC10dRequest({C10dOp::kAdd, {"n"}, {}, 0});
  std::string sum;
  do {
    other.Send(read);
    sum = other.Receive(8);
    ASSERT_EQ(sum.size(), 8u);
  } while (sum != Int64(2 * kBurst));
}

TEST(StoreProxy, TellsAnOldClientsDeleteKeyByItsSilence) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection old(proxy->port());
  std::string bytes;
  PutByte(&bytes, 3);  // ADD of PyTorch 1.13.
  PutText(&bytes, "init/");
  PutInt64(&bytes, 1);
  PutByte(&bytes, 8);  // DELETE_KEY of PyTorch 1.13.
  PutText(&bytes, "init/");
  old.Send(bytes);
  std::string replies;
  PutInt64(&replies, 1);
  PutInt64(&replies, 1);
  EXPECT_EQ(old.Receive(16), replies);
}

TEST(StoreProxy, NonsenseEndsItsOwnStreamAlone) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection good(proxy->port()), bad(proxy->port());
  good.Send(Validate());
  EXPECT_TRUE(Answers(good));
  bad.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(bad.Ends());
  EXPECT_TRUE(Answers(good));
}

TEST(StoreProxy, ClientsWaitForAStoreThatComesLate) {
  auto kept = *Reserve(0);
  const auto proxy = ProxyTo(kept.port);
  RawConnection client(proxy->port());
  client.Send(Validate() + Ping(7));
  pollfd entry{client.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 30), 0);
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", kept.port));
  EXPECT_EQ(client.Receive(4), std::string("\7\0\0\0", 4));
}

TEST(StoreProxy, ClosesItsClientsWithTheStoreAndFindsTheNext) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection client(proxy->port());
  client.Send(Validate() + Wait("lost"));
  RawConnection other(proxy->port());
  other.Send(Validate());
  EXPECT_TRUE(Answers(other));
  server->Reset();
  EXPECT_TRUE(client.Ends());
  EXPECT_TRUE(other.Ends());
  RawConnection next(proxy->port());
  next.Send(Validate());
  EXPECT_TRUE(Answers(next));
}

TEST(StoreProxy, OutlivesRunningOutOfDescriptorsAndDoesNotSpin) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  RawConnection first(proxy->port());
  first.Send(Validate());
  EXPECT_TRUE(Answers(first));
  RawConnection late(UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  {
    const NoDescriptors none;
    late.Connect(proxy->port());
    late.Send(Validate());
    const std::clock_t before = std::clock();
    pollfd entry{late.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 300), 0);  // It waits in the kernel's queue.
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
    EXPECT_TRUE(Answers(first));
  }
  EXPECT_TRUE(Answers(late));
}

TEST(StoreProxy, ClosesAClientThatReadsNothing) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port(), 4 << 20);
  RawConnection slow(proxy->port()), good(proxy->port());
  slow.Send(Validate() + Set("k", std::string(1 << 20, 'x')));
  for (int i = 0; i < 64; ++i) slow.Send(Get("k"));
  good.Send(Validate());
  // Each answer takes a turn of the proxy. In that turn more data comes for the slow client.
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Answers(good));
  EXPECT_LT(slow.Receive(size_t{64} * ((1 << 20) + 8)).size(), size_t{64} << 20);
  EXPECT_TRUE(Answers(good));
}

TEST(StoreProxy, AWaitOfAClientThatHasGoneIsForgotten) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto proxy = ProxyTo(server->port());
  std::string pop = SerializeC10dRequest({C10dOp::kQueuePop, {"q"}, {}, 0});
  RawConnection second(proxy->port());
  second.Send(Validate());
  {
    RawConnection first(proxy->port());
    first.Send(Validate() + Ping(7) + Wait("q"));
    EXPECT_EQ(first.Receive(4), std::string("\7\0\0\0", 4));
    second.Send(Wait("q"));
  }
  // One item wakes one waiter. If the first were still there, the item would wake it.
  RawConnection pushes(server->port());
  pushes.Send(Validate() + SerializeC10dRequest({C10dOp::kQueuePush, {"q"}, {"item"}, 0}));
  EXPECT_EQ(second.Receive(1), std::string(1, static_cast<char>(kC10dStopWaiting)));
}

// Plays a proxy's connection to the store, byte by byte.
TEST(C10dServer, LeavesAStreamThatItHasEnded) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  RawConnection carrier(server->port());
  carrier.Send(kStreamsGreeting);
  carrier.Send(Frame(5, "GET /"));
  EXPECT_EQ(carrier.Receive(8), Frame(5, ""));
  carrier.Send(Frame(5, Validate() + Ping(1)) + Frame(4, Validate() + Ping(2)));
  EXPECT_EQ(carrier.Receive(12), Frame(4, std::string("\2\0\0\0", 4)));
  carrier.Send(Frame(5, "") + Frame(4, ""));  // Both sides have now ended the first stream.
  EXPECT_EQ(carrier.Receive(8), Frame(4, ""));
  carrier.Send(Frame(6, Validate() + Ping(3)));
  EXPECT_EQ(carrier.Receive(12), Frame(6, std::string("\3\0\0\0", 4)));
}

TEST(C10dServer, ClosesAProxyThatOpensStreamsWithoutEnd) {
  constexpr uint32_t kTwiceTheLimit = 2 * 16384;
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  RawConnection carrier(server->port());
  std::string frames(kStreamsGreeting);
  for (uint32_t stream = 1; stream <= kTwiceTheLimit; ++stream) {
    PutFrame(&frames, stream, Validate());
  }
  carrier.Send(frames);
  carrier.Receive(8 * kTwiceTheLimit);  // Read refusals until the connection ends.
  EXPECT_TRUE(carrier.Ends());
  RawConnection another(server->port());
  another.Send(Validate());
  EXPECT_TRUE(Answers(another));
}

TEST(C10dServer, ClosesWhoGreetsLikeAProxyAndIsNone) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  RawConnection stranger(server->port());
  stranger.Send("\x15hullaballoo");
  EXPECT_TRUE(stranger.Ends());
}

TEST(SealedProxy, CarriesWhatNobodyReadsOnTheWay) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), WithKey());
  const ListeningSocket wire = *Listen("127.0.0.1", 0);
  const auto proxy = SealedProxyTo(wire.port);
  pollfd entry{wire.fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 100'000), 1);
  const UniqueFd from(::accept(wire.fd.get(), nullptr, nullptr));
  RawConnection to(server->port());
  RawConnection worker(proxy->port());
  const std::string value(100'000, 'v');
  worker.Send(Validate() + Set("a key", value) + Get("a key") + Ping(7));
  std::string reply;
  PutText(&reply, value);
  const size_t awaited = reply.size() + 4;
  std::string seen, heard;
  while (heard.size() < awaited) {
    pollfd entries[] = {{from.get(), POLLIN, 0}, {to.fd(), POLLIN, 0}, {worker.fd(), POLLIN, 0}};
    ASSERT_GT(::poll(entries, 3, 100'000), 0);
    for (const auto& [in, out] :
         {std::pair(from.get(), to.fd()), {to.fd(), from.get()}, {worker.fd(), -1}}) {
      char bytes[65536];
      const ssize_t got = ::recv(in, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got <= 0) continue;
      (out < 0 ? heard : seen).append(bytes, static_cast<size_t>(got));
      if (out >= 0) {
        ASSERT_EQ(::send(out, bytes, static_cast<size_t>(got), MSG_NOSIGNAL), got);
      }
    }
  }
  EXPECT_TRUE(heard == reply + std::string("\7\0\0\0", 4));
  EXPECT_GT(seen.size(), 2 * value.size());
  EXPECT_EQ(seen.find("a key"), std::string::npos);
  EXPECT_EQ(seen.find("vvvvvvvv"), std::string::npos);
}

TEST(SealedProxy, ManyWorkersShareItAndItOutlivesAReset) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), WithKey());
  const auto proxy = SealedProxyTo(server->port());
  std::vector<std::unique_ptr<RawConnection>> workers;
  for (int i = 0; i < 50; ++i) workers.push_back(std::make_unique<RawConnection>(proxy->port()));
  for (auto& worker : workers) worker->Send(Validate());
  for (auto& worker : workers) EXPECT_TRUE(Answers(*worker));
  server->Reset();
  for (auto& worker : workers) EXPECT_TRUE(worker->Ends());
  RawConnection next(proxy->port());
  next.Send(Validate());
  EXPECT_TRUE(Answers(next));
}

TEST(SealedProxy, ClosesAClientThatReadsNothing) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), WithKey());
  const auto proxy = SealedProxyTo(server->port(), "ours", 4 << 20);
  RawConnection slow(proxy->port()), good(proxy->port());
  slow.Send(Validate() + Set("k", std::string(1 << 20, 'x')));
  for (int i = 0; i < 64; ++i) slow.Send(Get("k"));
  good.Send(Validate());
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Answers(good));
  EXPECT_LT(slow.Receive(size_t{64} * ((1 << 20) + 8)).size(), size_t{64} << 20);
  EXPECT_TRUE(Answers(good));
}

// Keeps what this process writes to stderr, and can be read meanwhile.
class StderrInFile {
 public:
  StderrInFile() { EXPECT_GE(::dup2(::fileno(file_), STDERR_FILENO), 0); }
  ~StderrInFile() {
    ::dup2(saved_.get(), STDERR_FILENO);
    std::fclose(file_);
  }

  std::string Text() const {
    std::string text(64 << 10, '\0');
    const ssize_t size = ::pread(::fileno(file_), text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }

 private:
  std::FILE* const file_ = std::tmpfile();
  const UniqueFd saved_{::dup(STDERR_FILENO)};
};

// Each side gives the reason, and no client reaches another store.
TEST(SealedProxy, OfAnotherRoundOrToAStoreWithoutASecretServesNobody) {
  for (const C10dServerOptions& options : {WithKey("theirs"), C10dServerOptions()}) {
    const StderrInFile said;
    const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), options);
    const auto proxy = SealedProxyTo(server->port());
    RawConnection worker(proxy->port());
    worker.Send(Validate() + Ping(7));
    for (const char* line : {"store: closed the connection from 127.0.0.1",
                             "it has not the secret of this round, or does not encrypt"}) {
      const Instant deadline = MonotonicClock().Now() + std::chrono::seconds(100);
      while (!absl::StrContains(said.Text(), line) && MonotonicClock().Now() < deadline) {
        ::poll(nullptr, 0, 10);
      }
      EXPECT_THAT(said.Text(), testing::HasSubstr(line));
    }
    pollfd entry{worker.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 300), 0);
    RawConnection direct(server->port());  // The store serves other clients.
    direct.Send(Validate());
    EXPECT_TRUE(Answers(direct));
  }
}

TEST(SealedProxy, FindsTheStoreOnceThatHasTheRoundsSecret) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), WithKey("the round before"));
  const auto proxy = SealedProxyTo(server->port());
  RawConnection worker(proxy->port());
  worker.Send(Validate() + Ping(7));
  server->Reset(std::nullopt, SealingKey("ours"));
  EXPECT_EQ(worker.Receive(4), std::string("\7\0\0\0", 4));
}

// The first bytes of the greeting may come one by one.
TEST(C10dServer, TellsProxiesApartHoweverTheirGreetingIsSplit) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), WithKey());
  RawConnection clear(server->port());
  for (const char byte : kStreamsGreeting) {
    clear.Send(std::string(1, byte));
    RawConnection turn(server->port());  // It is answered after the byte was read.
    turn.Send(Validate());
    EXPECT_TRUE(Answers(turn));
  }
  clear.Send(Frame(4, Validate() + Ping(2)));
  EXPECT_EQ(clear.Receive(12), Frame(4, std::string("\2\0\0\0", 4)));
  RawConnection sealed(server->port());
  sealed.Send("\x15");
  RawConnection turn(server->port());
  turn.Send(Validate());
  EXPECT_TRUE(Answers(turn));
  sealed.Send(std::string("\x16\x03\x01\0\4none", 9));
  EXPECT_EQ(sealed.Receive(1), "\x15");  // A TLS alert.
}

}  // namespace
}  // namespace hlaunch
