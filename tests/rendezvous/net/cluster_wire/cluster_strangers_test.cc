// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Peers that are no hosts of the cluster, or not this cluster's head.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>

#include "rendezvous/net/cluster_wire/ask_as_stranger.h"
#include "rendezvous/net/cluster_wire/count_by_address.h"
#include "rendezvous/net/cluster_wire/wire_limits.h"
#include "rendezvous/net/socket/accept.h"
#include "rendezvous/net/trust/certificate.h"
#include "tests/rendezvous/net/cluster_wire/wire_lab.h"

namespace hlaunch {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr Duration kLong = std::chrono::seconds(60);

// Whether the peer has closed the connection.
bool IsClosed(const UniqueFd& fd) {
  char byte = 0;
  const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
}

// A connection from this host's loopback address `own`.
UniqueFd ConnectFrom(const std::string& own, uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, own.c_str(), &address.sin_addr), 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

class Strangers : public testing::Test {
 protected:
  bool Until(const std::function<bool()>& holds) { return RunUntil(loop_, holds); }

  // Asks on its own thread while the head's loop runs.
  absl::StatusOr<json> Ask(uint16_t port, const std::string& pin, Envelope question,
                           Duration patience = kLong) {
    std::future<absl::StatusOr<json>> answer = std::async(std::launch::async, [&] {
      return AskAsStranger("127.0.0.1", port, pin, question, patience);
    });
    EXPECT_TRUE(Until(
        [&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    return answer.get();
  }

  std::unique_ptr<RecordingWire> Stranger() {
    return std::make_unique<RecordingWire>(loop_, ConnectTo(head_.port()),
                                           *TlsOfStranger(cluster_.pin()));
  }

  // The error that a host's link gets with `identity`.
  absl::Status RefusalOf(const HostIdentity& identity) {
    RecordingLink link(loop_, head_.port(), identity);
    EXPECT_TRUE(Until([&] { return link.downs.size() >= 2; }));
    EXPECT_EQ(link.ups, 0);
    return link.downs.back();
  }

  asio::io_context loop_;
  const OwnCluster cluster_;
  const OwnCluster foreign_;
  RecordingHead head_{loop_, cluster_.Head()};
};

TEST_F(Strangers, AskOneQuestion) {
  const auto answer = Ask(head_.port(), cluster_.pin(), Question(1, "join", {{"host", "node1"}}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["host"], "node1");
  EXPECT_EQ(head_.stranger_address, "127.0.0.1");
  const auto refused = Ask(head_.port(), cluster_.pin(), Question(1, "jobs", json::object()));
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
  EXPECT_TRUE(head_.history.empty());
  EXPECT_TRUE(head_.said.empty());
}

TEST_F(Strangers, AskNoSecondQuestion) {
  const auto stranger = Stranger();
  ASSERT_TRUE(Until([&] { return stranger->shaken; }));
  stranger->wire->Send(Question(1, "join", json::object()));
  ASSERT_TRUE(Until([&] { return stranger->said.size() == 1; }));
  stranger->wire->Send(Question(2, "join", json::object()));
  ASSERT_TRUE(Until([&] { return stranger->ended.size() == 1; }));
  EXPECT_EQ(stranger->said.size(), 1u);
}

TEST_F(Strangers, TellNothingAndAskNothingLong) {
  const auto teller = Stranger();
  const auto talker = Stranger();
  ASSERT_TRUE(Until([&] { return teller->shaken && talker->shaken; }));
  teller->wire->Send(NewsOf("part", json::object()));
  talker->wire->Send(Question(1, "join", {{"text", std::string(kMaxStrangerFrame, 'a')}}));
  ASSERT_TRUE(Until([&] { return teller->ended.size() == 1 && talker->ended.size() == 1; }));
  EXPECT_TRUE(teller->said.empty() && talker->said.empty());
  EXPECT_EQ(head_.stranger_address, "");
}

TEST_F(Strangers, KnowTheHeadByItsPin) {
  const Envelope question = Question(1, "join", json::object());
  const auto wrong = Ask(head_.port(), foreign_.pin(), question);
  EXPECT_TRUE(absl::IsUnauthenticated(wrong.status())) << wrong.status();
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("another cluster"));
  EXPECT_EQ(head_.stranger_address, "");  // No question reached the head.
}

TEST_F(Strangers, FindNobody) {
  const ListeningSocket reserved = *Reserve(0);
  const auto none = AskAsStranger("127.0.0.1", reserved.port, cluster_.pin(),
                                  Question(1, "join", json::object()), kLong);
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  const ListeningSocket mute = *Listen("127.0.0.1", 0);
  const auto late =
      AskAsStranger("127.0.0.1", mute.port, cluster_.pin(), Question(1, "join", json::object()),
                    std::chrono::milliseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
}

TEST_F(Strangers, WithWrongCertificatesGetNothing) {
  HostIdentity foreign = foreign_.Host("node1");
  foreign.authority = cluster_.authority().certificate;
  const absl::Status other = RefusalOf(foreign);
  EXPECT_TRUE(absl::IsUnauthenticated(other)) << other;
  const OwnCluster long_ago(std::time(nullptr) - 40 * 86400);
  const RecordingHead old_head(loop_, [&] {
    HostIdentity head = *MakeHeadIdentity(long_ago.authority(), std::time(nullptr));
    return head;
  }());
  RecordingLink expired(loop_, old_head.port(), long_ago.Host("node1"));
  ASSERT_TRUE(Until([&] { return expired.downs.size() >= 2; }));
  EXPECT_THAT(std::string(expired.downs.back().message()), HasSubstr("expired"));
  const absl::Status head = RefusalOf(cluster_.Head());  // Its certificate is only for servers.
  EXPECT_TRUE(absl::IsUnauthenticated(head)) << head;
  EXPECT_TRUE(old_head.history.empty());
  EXPECT_TRUE(head_.history.empty());
  EXPECT_TRUE(head_.said.empty());
}

TEST_F(Strangers, AreNotTheMachinesOwnHostThoughItsCertificateHasExpired) {
  const OwnCluster cluster(std::time(nullptr) - 40 * 86400);
  RecordingHead head(loop_, *MakeHeadIdentity(cluster.authority(), std::time(nullptr)));
  head.own_host = "node0";
  RecordingLink other(loop_, head.port(), cluster.Host("node1"));
  RecordingLink own(loop_, head.port(), cluster.Host("node0"));
  ASSERT_TRUE(Until([&] { return own.ups == 1 && !other.downs.empty(); }));
  EXPECT_THAT(std::string(other.downs.back().message()), HasSubstr("expired"));
  EXPECT_EQ(head.hosts.size(), 1u);
}

// A server with a foreign identity that accepts each connection.
class FalseHead {
 public:
  FalseHead(asio::io_context& loop, const HostIdentity& identity)
      : loop_(loop), tls_(*TlsOfServer(identity)), listener_(*Listen("127.0.0.1", 0)) {}

  void Serve() {
    AcceptConnections(listener_.fd.get(), 8, [this](UniqueFd fd) {
      wires.push_back(std::make_unique<RecordingWire>(loop_, std::move(fd), tls_, true));
    });
  }
  uint16_t port() const { return listener_.port; }

  std::vector<std::unique_ptr<RecordingWire>> wires;

 private:
  asio::io_context& loop_;
  const TlsContext tls_;
  const ListeningSocket listener_;
};

// Why a link does not accept a server with `identity` as the head.
std::string RefusalOfHead(asio::io_context& loop, const OwnCluster& cluster,
                          const HostIdentity& identity) {
  FalseHead head(loop, identity);
  RecordingLink link(loop, head.port(), cluster.Host("node1"));
  auto asked = std::async(std::launch::async, [&] {
    return AskAsStranger("127.0.0.1", head.port(), cluster.pin(),
                         Question(1, "join", json::object()), kLong);
  });
  EXPECT_TRUE(RunUntil(loop, [&] {
    head.Serve();
    return !link.downs.empty() &&
           asked.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }));
  const auto answer = asked.get();
  EXPECT_TRUE(absl::IsUnauthenticated(answer.status())) << answer.status();
  EXPECT_TRUE(absl::IsUnauthenticated(link.downs[0])) << link.downs[0];
  EXPECT_EQ(link.ups, 0);
  for (const auto& wire : head.wires) EXPECT_TRUE(wire->said.empty());
  return std::string(link.downs[0].message());
}

TEST_F(Strangers, AHostCannotBeTheHead) {
  EXPECT_THAT(RefusalOfHead(loop_, cluster_, cluster_.Host("node2")), HasSubstr("certificate"));
}

TEST_F(Strangers, NorCanAServerThatIsNotCalledTheHead) {
  const Certificate authority = CertificateIn(cluster_.authority().certificate);
  const Key signer = KeyIn(cluster_.authority().key);
  const Key own = NewKey();
  CertificateText text{"node2", "critical,digitalSignature", "node2"};
  text.uri = "hlaunch-host:node2";
  const Certificate made = Sign(own.get(), text, authority.get(), signer.get());
  const HostIdentity identity{cluster_.authority().certificate, PemOf(made.get()),
                              PemOf(own.get())};
  EXPECT_THAT(RefusalOfHead(loop_, cluster_, identity), HasSubstr("not the head's"));
}

TEST_F(Strangers, NorCanTheHeadOfAnotherCluster) {
  RefusalOfHead(loop_, cluster_, foreign_.Head());
  // It shows our authority, whose pin is no secret.
  HostIdentity borrowed = foreign_.Head();
  borrowed.authority = cluster_.authority().certificate;
  RefusalOfHead(loop_, cluster_, borrowed);
}

TEST_F(Strangers, AreFewAtTheSameTime) {
  std::vector<std::unique_ptr<RecordingWire>> strangers;
  for (size_t i = 0; i < kMostStrangersOfOne; ++i) {
    strangers.push_back(Stranger());
    ASSERT_TRUE(Until([&] { return strangers.back()->shaken; }));
  }
  const auto more = Stranger();
  ASSERT_TRUE(Until([&] { return more->ended.size() == 1; }));
  // Hosts still connect, and strangers can once another stranger has gone.
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  strangers.pop_back();
  EXPECT_TRUE(Until(
      [&] { return Ask(head_.port(), cluster_.pin(), Question(1, "join", json::object())).ok(); }));
  for (const auto& stranger : strangers) EXPECT_TRUE(stranger->ended.empty());
}

TEST_F(Strangers, FewAreInTheirHandshakeAtTheSameTime) {
  std::vector<UniqueFd> mute;
  for (size_t i = 0; i < kMostHandshakesOfOne; ++i) mute.push_back(ConnectTo(head_.port()));
  const UniqueFd more = ConnectTo(head_.port());
  ASSERT_TRUE(Until([&] { return IsClosed(more); }));
  for (const UniqueFd& fd : mute) EXPECT_FALSE(IsClosed(fd));
  mute.clear();
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  EXPECT_TRUE(Until([&] { return link.ups == 1; }));
}

TEST_F(Strangers, ManyAddressesCannotKeepAHostOut) {
  std::vector<UniqueFd> mute;
  for (size_t i = 0; i < kMostHandshakes; ++i) {
    mute.push_back(
        ConnectFrom(absl::StrCat("127.0.1.", 1 + i / kMostHandshakesOfOne), head_.port()));
    loop_.restart();
    loop_.poll();
  }
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  EXPECT_TRUE(Until([&] { return IsClosed(mute[0]); }));
}

TEST_F(Strangers, WhoSayNothingAreCutInTime) {
  const UniqueFd mute = ConnectTo(head_.port());
  const auto shy = Stranger();
  const auto lingering = Stranger();
  ASSERT_TRUE(Until([&] { return shy->shaken && lingering->shaken; }));
  lingering->wire->Send(Question(1, "join", json::object()));
  EXPECT_TRUE(Until([&] {
    shy->wire->Send(NewsOf(kPing, json::object()));        // It lives, but asks nothing.
    lingering->wire->Send(NewsOf(kPing, json::object()));  // It lives, but does not leave.
    return IsClosed(mute) && shy->ended.size() == 1 && lingering->ended.size() == 1;
  }));
  EXPECT_EQ(lingering->said.size(), 1u);
}

TEST_F(Strangers, GarbageHarmsNobody) {
  RecordingLink link(loop_, head_.port(), cluster_.Host("node1"));
  ASSERT_TRUE(Until([&] { return link.ups == 1; }));
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'),
        std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10), std::string(64, '\0')}) {
    const UniqueFd fd = ConnectTo(head_.port());
    pollfd ready{fd.get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
    ::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(fd.get(), SHUT_WR);
    char byte = 0;
    EXPECT_TRUE(Until([&] {
      const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);  // An alert may come first.
      return got == 0 || (got < 0 && errno != EAGAIN);
    }));
  }
  EXPECT_TRUE(link.link->connected());
  EXPECT_TRUE(link.downs.empty());
}

TEST(CountByAddress, CountsInAllAndOfEach) {
  CountByAddress count(3, 2);
  EXPECT_TRUE(count.Admit("10.0.0.1"));
  EXPECT_TRUE(count.Admit("10.0.0.1"));
  EXPECT_FALSE(count.Admit("10.0.0.1"));
  EXPECT_TRUE(count.Admit("10.0.0.2"));
  EXPECT_FALSE(count.Admit("10.0.0.3"));
  count.Leave("10.0.0.1");
  EXPECT_TRUE(count.Admit("10.0.0.3"));
  EXPECT_EQ(count.size(), 3u);
}

TEST(CountByAddress, ANetworkOfIpv6IsOne) {
  EXPECT_EQ(CountedAs("2001:db8:0:1::1"), CountedAs("2001:db8:0:1:ffff::2"));
  EXPECT_NE(CountedAs("2001:db8:0:1::1"), CountedAs("2001:db8:0:2::1"));
  EXPECT_EQ(CountedAs("::ffff:10.0.0.1"), CountedAs("10.0.0.1"));
  EXPECT_NE(CountedAs("10.0.0.1"), CountedAs("10.0.0.2"));
}

}  // namespace
}  // namespace hlaunch
