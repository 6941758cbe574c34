// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/front.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/mutex.h"
#include "rendezvous/net/port/handshake_queue.h"
#include "rendezvous/net/trust/token_greeting.h"
#include "tests/rendezvous/client_hello.h"
#include "tests/rendezvous/site_certificates.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

UniqueFd ListenOnLoopback(uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(fd.get(), 128), 0);
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  *port = ntohs(address.sin_port);
  return fd;
}

UniqueFd Connect(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

void Say(const UniqueFd& fd, const std::string& bytes) {
  EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
}

// Whether the peer closes the connection within 100 s.
bool IsClosed(const UniqueFd& fd) {
  pollfd wait = {fd.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&wait, 1, 100'000) == 1 && ::recv(fd.get(), &byte, 1, 0) <= 0;
}

// Records the connections it is handed, with the bytes that are readable then.
class Inbox {
 public:
  Front::Handler Handler() {
    return [this](UniqueFd fd) { Take(std::move(fd)); };
  }
  Front::GuardedHandler GuardedHandler() {
    return [this](UniqueFd fd, std::shared_ptr<ConnectionGuard> guard) {
      {
        MutexLock lock(&mu_);
        guards_.push_back(std::move(guard));
      }
      Take(std::move(fd));
    };
  }

  // What came, once `count` connections have come.
  std::vector<std::string> Await(size_t count) {
    const Instant deadline = MonotonicClock().Now() + seconds(200);
    MutexLock lock(&mu_);
    while (seen_.size() < count && more_.WaitUntil(&mu_, deadline)) {
    }
    return seen_;
  }

  std::shared_ptr<ConnectionGuard> guard(size_t i) {
    MutexLock lock(&mu_);
    return guards_.at(i);
  }

 private:
  void Take(UniqueFd fd) {
    char bytes[64] = {};
    const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    MutexLock lock(&mu_);
    seen_.push_back(std::string(bytes, n > 0 ? n : 0));
    connections_.push_back(std::move(fd));
    more_.SignalAll();
  }

  Mutex mu_;
  CondVar more_;
  std::vector<std::shared_ptr<ConnectionGuard>> guards_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> seen_ ABSL_GUARDED_BY(mu_);
  std::vector<UniqueFd> connections_ ABSL_GUARDED_BY(mu_);
};

class FrontTest : public testing::Test {
 protected:
  void Start(bool with_c10d) {
    options_.grpc = grpc_.GuardedHandler();
    if (with_c10d) options_.c10d = c10d_.Handler();
    front_ = std::make_unique<Front>(ListenOnLoopback(&port_), options_);
  }

  Inbox grpc_;
  Inbox c10d_;
  Front::Options options_;
  uint16_t port_ = 0;
  std::unique_ptr<Front> front_;
};

TEST_F(FrontTest, TellsTheProtocolsApartAndTakesNoByte) {
  Start(/*with_c10d=*/true);
  const UniqueFd http = Connect(port_);
  Say(http, "PRI * HTTP/2.0\r\n");
  const UniqueFd validate = Connect(port_);
  Say(validate, std::string("\0\xCE\xF7\x85\x3C", 5));
  EXPECT_THAT(grpc_.Await(1), testing::ElementsAre("PRI * HTTP/2.0\r\n"));
  EXPECT_THAT(c10d_.Await(1), testing::ElementsAre(std::string("\0\xCE\xF7\x85\x3C", 5)));
}

// The bytes that the peer sends until it closes.
std::string ReadToTheEnd(const UniqueFd& fd) {
  std::string all(4096, '\0');
  const ssize_t n = ::recv(fd.get(), all.data(), all.size(), MSG_WAITALL);
  all.resize(n > 0 ? n : 0);
  return all;
}

// The next `count` bytes from the peer.
std::string Read(const UniqueFd& fd, size_t count) {
  std::string bytes(count, '\0');
  const ssize_t n = ::recv(fd.get(), bytes.data(), count, MSG_WAITALL);
  bytes.resize(n > 0 ? n : 0);
  return bytes;
}

TEST_F(FrontTest, ATlsHandshakeIsForThoseAloneWhoHaveProvedThatTheyHoldTheToken) {
  options_.trust = Trust::OfToken(kToken).value();
  Start(/*with_c10d=*/true);
  const std::string hello = HelloFor(options_.trust.server_name());
  const UniqueFd member = Connect(port_);
  const ClientGreeting greeting(options_.trust, NewNonce());
  Say(member, greeting.hello());
  const std::string proof = greeting.Prove(Read(member, kAnswerBytes)).value();
  // One piece per byte.
  for (const char byte : proof + hello.substr(0, 64)) Say(member, std::string(1, byte));
  EXPECT_THAT(grpc_.Await(1), testing::SizeIs(1));
  const UniqueFd reader = Connect(port_);  // This peer has read the member's first bytes.
  Say(reader, hello);
  EXPECT_EQ(ReadToTheEnd(reader), "\x15\x03\x03" + std::string("\0\x02\x02\x70", 4));
  const UniqueFd again = Connect(port_);
  Say(again, greeting.hello());
  ASSERT_EQ(Read(again, kAnswerBytes).size(), kAnswerBytes);
  Say(again, proof + hello);
  EXPECT_EQ(ReadToTheEnd(again), "");
  const UniqueFd clear = Connect(port_);
  Say(clear, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_THAT(ReadToTheEnd(clear), testing::HasSubstr("demands a token"));
  const UniqueFd gone = Connect(port_);
  Say(gone, hello.substr(0, 30));
  ::shutdown(gone.get(), SHUT_WR);
  EXPECT_EQ(ReadToTheEnd(gone), "");
  EXPECT_THAT(grpc_.Await(1), testing::SizeIs(1));
}

class FrontInClearTest : public FrontTest {
 protected:
  FrontInClearTest() {
    options_.trust = Trust::OfTokenInClear(kToken).value();
    options_.peers = &peers_;
  }

  ClientGreeting NewGreeting() const { return ClientGreeting(options_.trust, NewNonce()); }

  PeerJobs peers_;
};

TEST_F(FrontInClearTest, HandsOnWhoHasProvedThatHeHoldsTheToken) {
  Start(/*with_c10d=*/true);
  const UniqueFd member = Connect(port_);
  const ClientGreeting greeting = NewGreeting();
  for (const char byte : greeting.hello()) Say(member, std::string(1, byte));
  const std::string proof = greeting.Prove(Read(member, kAnswerBytes)).value();
  Say(member, proof.substr(0, 30));
  Say(member, proof.substr(30) + "PRI * HTTP/2.0\r\n");
  EXPECT_THAT(grpc_.Await(1), testing::ElementsAre("PRI * HTTP/2.0\r\n"));
}

TEST_F(FrontInClearTest, HandsOnNobodyElse) {
  Start(/*with_c10d=*/true);
  const UniqueFd liar = Connect(port_);
  Say(liar, NewGreeting().hello());
  ASSERT_EQ(Read(liar, kAnswerBytes).size(), kAnswerBytes);
  Say(liar, std::string("hlaunch\x03") + std::string(32, 'x') + "PRI * HTTP/2.0\r\n");
  EXPECT_EQ(ReadToTheEnd(liar), "");
  const UniqueFd other = Connect(port_);
  Say(other, ClientGreeting(Trust::OfTokenInClear(kOtherToken).value(), NewNonce()).hello());
  EXPECT_EQ(ReadToTheEnd(other), RefusalOfHello(GreetingRefusal::kOtherToken));
  const UniqueFd tls = Connect(port_);
  Say(tls, ClientGreeting(Trust::OfToken(kToken).value(), NewNonce()).hello());
  EXPECT_EQ(ReadToTheEnd(tls), RefusalOfHello(GreetingRefusal::kInClear));
  const UniqueFd clear = Connect(port_);
  Say(clear, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_THAT(ReadToTheEnd(clear), testing::HasSubstr("demands a token"));
  const UniqueFd late = Connect(port_);
  const ClientGreeting greeting = NewGreeting();
  Say(late, greeting.hello());
  const std::string proof = greeting.Prove(Read(late, kAnswerBytes)).value();
  const UniqueFd thief = Connect(port_);  // This peer has read the wire.
  Say(thief, greeting.hello());
  ASSERT_EQ(Read(thief, kAnswerBytes).size(), kAnswerBytes);
  Say(thief, proof);
  EXPECT_EQ(ReadToTheEnd(thief), "");
  Say(late, proof + "PRI ");
  EXPECT_THAT(grpc_.Await(1), testing::ElementsAre("PRI "));
}

TEST_F(FrontInClearTest, TellsABrokenGreetingFromAWrongProof) {
  Start(/*with_c10d=*/true);
  testing::internal::CaptureStderr();
  const UniqueFd gone = Connect(port_);
  Say(gone, NewGreeting().hello());
  ASSERT_EQ(Read(gone, kAnswerBytes).size(), kAnswerBytes);
  ::shutdown(gone.get(), SHUT_WR);
  EXPECT_EQ(ReadToTheEnd(gone), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr("broke off before it proved"),
                             testing::Not(testing::HasSubstr("refused"))));
}

TEST_F(FrontInClearTest, WaitsForAProofAsLongAsForTheFirstBytes) {
  options_.patience = milliseconds(20);
  Start(/*with_c10d=*/false);  // A store would get what is silent because this thread stands still.
  const UniqueFd silent = Connect(port_);
  Say(silent, NewGreeting().hello());
  EXPECT_THAT(ReadToTheEnd(silent), testing::SizeIs(testing::Le(kAnswerBytes)));
}

TEST_F(FrontInClearTest, DecidesTheOldestThatOwesAProofWhenTheyAreTooMany) {
  options_.max_undecided = 2;
  options_.patience = seconds(1000);
  Start(/*with_c10d=*/true);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(Connect(port_));
    Say(silent.back(), NewGreeting().hello());
    EXPECT_EQ(Read(silent.back(), kAnswerBytes).size(), kAnswerBytes);
  }
  EXPECT_EQ(ReadToTheEnd(silent.front()), "");
}

TEST_F(FrontTest, RefusesTheNextConnectionOfAFlood) {
  Start(/*with_c10d=*/false);
  const UniqueFd flood = Connect(port_);
  Say(flood, "PRI ");
  EXPECT_THAT(grpc_.Await(1), testing::SizeIs(1));
  std::string streams(24, 'x');  // In place of the preface.
  for (int i = 0; i < 100; ++i) streams += std::string("\0\0\0\1\5\0\0\0\1", 9);
  EXPECT_FALSE(grpc_.guard(0)->Received(streams));
  const UniqueFd again = Connect(port_);
  Say(again, "PRI ");
  EXPECT_TRUE(IsClosed(again));
  EXPECT_TRUE(IsClosed(flood));
  EXPECT_THAT(grpc_.Await(1), testing::SizeIs(1));
}

TEST_F(FrontTest, WithCertificatesOneAddressHasFewHandshakesAtOnce) {
  options_.trust = Trust::OfFiles(SiteAuthority().Write("front")).value();
  Start(/*with_c10d=*/false);
  std::vector<UniqueFd> peers;
  for (size_t i = 0; i < HandshakeQueue::kMostOfOne + 1; ++i) {
    peers.push_back(Connect(port_));
    Say(peers.back(), HelloFor("node"));
  }
  EXPECT_THAT(grpc_.Await(HandshakeQueue::kMostOfOne), testing::SizeIs(HandshakeQueue::kMostOfOne));
  const auto first = grpc_.guard(0);  // Its handshake comes to its end.
  first->Received(HelloFor("node"));
  first->Sent("the server's part");
  first->Received(std::string("\x17\3\3\0\1x", 6));
  first->Sent("settings");
  EXPECT_THAT(grpc_.Await(HandshakeQueue::kMostOfOne + 1),
              testing::SizeIs(HandshakeQueue::kMostOfOne + 1));
}

TEST_F(FrontTest, GivesASilentConnectionToTheStore) {
  options_.patience = milliseconds(20);
  Start(/*with_c10d=*/true);
  const UniqueFd silent = Connect(port_);
  EXPECT_THAT(c10d_.Await(1), testing::ElementsAre(""));
}

TEST_F(FrontTest, ClosesWhatNobodyWants) {
  options_.patience = milliseconds(20);
  Start(/*with_c10d=*/false);
  const UniqueFd silent = Connect(port_);
  EXPECT_TRUE(IsClosed(silent));
  const UniqueFd garbage = Connect(port_);
  Say(garbage, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(IsClosed(garbage));
}

TEST_F(FrontTest, DecidesTheOldestSilentOneWhenTheyAreTooMany) {
  options_.max_undecided = 2;
  options_.patience = seconds(1000);
  Start(/*with_c10d=*/true);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(Connect(port_));
  EXPECT_EQ(c10d_.Await(1).size(), 1u);
}

TEST_F(FrontTest, HoldsAsManySilentConnectionsAsAClusterOpensAtOnce) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit high = before;
  high.rlim_cur = before.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &high), 0);
  if (high.rlim_cur < 4096) GTEST_SKIP() << "needs 4096 descriptors";
  options_.patience = seconds(1000);
  Start(/*with_c10d=*/true);
  std::vector<UniqueFd> nodes;
  for (int i = 0; i < 1200; ++i) nodes.push_back(Connect(port_));
  for (const UniqueFd& node : nodes) Say(node, "PRI ");
  EXPECT_EQ(grpc_.Await(1200).size(), 1200u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(FrontTest, HandsNoConnectionOfAnOldRoundToTheStore) {
  Start(/*with_c10d=*/true);
  const UniqueFd stale = Connect(port_);
  const UniqueFd node = Connect(port_);
  front_->EndC10d();
  Say(stale, std::string("\0\xCE\xF7\x85\x3C", 5));
  EXPECT_TRUE(IsClosed(stale));
  Say(node, "PRI ");
  EXPECT_EQ(grpc_.Await(1).size(), 1u);
  const UniqueFd fresh = Connect(port_);
  Say(fresh, "\x03");
  EXPECT_THAT(c10d_.Await(1), testing::ElementsAre("\x03"));
}

TEST_F(FrontTest, GoesOnWhenAConnectionLeavesUndecided) {
  Start(/*with_c10d=*/true);
  Connect(port_).Close();
  const UniqueFd http = Connect(port_);
  Say(http, "PRI ");
  EXPECT_EQ(grpc_.Await(1).size(), 1u);
}

TEST_F(FrontTest, ServesThoseWhoWaitedForADescriptor) {
  Start(/*with_c10d=*/true);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd client = Connect(port_);  // It is accepted or waits in the kernel's queue.
  Say(client, "PRI ");
  EXPECT_EQ(grpc_.Await(1).size(), 1u);
  UniqueFd waiting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit none = before;
  none.rlim_cur = waiting.get() + 1;  // This process can open no new descriptor.
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  Say(waiting, "PRI ");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(grpc_.Await(2).size(), 2u);
}

TEST_F(FrontTest, ClosesUndecidedOnesAtTheEnd) {
  Start(/*with_c10d=*/true);
  const UniqueFd silent = Connect(port_);
  front_.reset();
  EXPECT_TRUE(IsClosed(silent));
}

}  // namespace
}  // namespace hlaunch
