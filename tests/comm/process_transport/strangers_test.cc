// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests what strangers can do at a rank's port. They know everything in the store, but not the
// secret of the round.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/connection/connect.h"
#include "comm/connection/peer_socket.h"
#include "comm/connection/rank_address.h"
#include "comm/process_transport/process_transport.h"
#include "proto/base/unique_fd.h"
#include "tests/fakes/memory_store.h"
#include "tests/rendezvous/store_fixtures.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

const std::string kSecret(32, 's');

ProcessTransportOptions Tcp(std::string secret = kSecret, Round round = 1) {
  ProcessTransportOptions options;
  options.address = "127.0.0.1";
  options.shared_memory = false;
  options.secret = std::move(secret);
  options.round = round;
  return options;
}

RankAddress AddressOf(MemoryStore& store, Rank rank) {
  return *ParseRankAddress(*store.Get(absl::StrCat("hlaunch/comm/default/", rank), In(100s)));
}

UniqueFd ConnectTo(const RankAddress& address) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

void Send(const UniqueFd& fd, const void* bytes, size_t size) {
  ::send(fd.get(), bytes, size, MSG_NOSIGNAL);  // The rank may have closed it.
}

// Sends a number to the peer and receives one from it. Returns that number or the error.
std::string Exchange(Transport& transport, std::byte mine = std::byte{1}) {
  const Rank peer = 1 - transport.rank();
  std::byte theirs{};
  Outgoing sent{{.peer = peer, .number = 4}, {&mine, 1}};
  Incoming received{{.peer = peer, .number = 4}, {&theirs, 1}};
  transport.Start(&sent);
  transport.Start(&received);
  absl::Status status = transport.Wait(received, In(300s));
  if (status.ok()) status = transport.Wait(sent, In(300s));
  return status.ok() ? absl::StrCat(static_cast<int>(theirs)) : std::string(status.message());
}

// Runs rank 1 in a thread beside `zero`. Returns the results of both.
std::vector<std::string> ExchangeBoth(MemoryStore& store, Transport& zero,
                                      const ProcessTransportOptions& options = Tcp()) {
  std::vector<std::string> results(2);
  std::thread other([&] {
    auto one = ProcessTransport::Create(store, 1, 2, options);
    results[1] = one.ok() ? Exchange(**one, std::byte{11}) : one.status().ToString();
  });
  results[0] = Exchange(zero, std::byte{10});
  other.join();
  return results;
}

// The bytes of a stranger that claims to be rank 1: a hello, a proof and a message.
std::string Claim() {
  const Hello hello = MakeHello(1, 0, 2, 1, true, "stranger");
  FrameHead head;
  head.number = 4;
  head.size = 1;
  std::string bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
  bytes += std::string(AcceptingGreeting::kProofSize, '\0');
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes + "\x63";
}

TEST(Strangers, WhoSaysFirstThatItIsARankIsNotBelieved) {
  MemoryStore store;
  auto zero = *ProcessTransport::Create(store, 0, 2, Tcp());
  const UniqueFd stranger = ConnectTo(AddressOf(store, 0));
  const std::string claim = Claim();
  Send(stranger, claim.data(), claim.size());
  EXPECT_THAT(ExchangeBoth(store, *zero), testing::ElementsAre("11", "10"));
}

// What a process of another user hears that says to rank 0 of this host that it is rank 1.
int TalkAsAnotherUser(const RankAddress& address) {
  if (::setresuid(54321, 54321, 54321) != 0) return 2;
  const UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto [to, length] = AbstractAddress(address.local_name);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0) return 3;
  const Hello hello = MakeHello(1, 0, 2, 1, true, "stranger");
  Send(fd, &hello, sizeof hello);
  char byte;
  return ::recv(fd.get(), &byte, 1, 0) <= 0 ? 0 : 1;
}

TEST(Strangers, AnotherUserOfTheHostHearsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  MemoryStore store;
  ProcessTransportOptions options = Tcp();
  options.shared_memory = true;
  auto zero = *ProcessTransport::Create(store, 0, 2, options);
  const RankAddress address = AddressOf(store, 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) ::_exit(TalkAsAnotherUser(address));
  int status = -1;
  std::thread ends([&] { ::waitpid(stranger, &status, 0); });
  EXPECT_THAT(ExchangeBoth(store, *zero, options), testing::ElementsAre("11", "10"));
  zero.reset();
  ends.join();
  EXPECT_EQ(status, 0);
}

TEST(Strangers, AThousandHalfOpenGreetingsKeepNobodyOut) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr int kStrangers = 1000;
  rlimit wide = limit;
  wide.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kStrangers + 200);
  if (wide.rlim_cur < 2 * kStrangers + 200) GTEST_SKIP() << "too few descriptors";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &wide), 0);
  MemoryStore store;
  auto zero = *ProcessTransport::Create(store, 0, 2, Tcp());
  std::vector<UniqueFd> strangers;
  const Hello hello = MakeHello(1, 0, 2, 1, true, "stranger");
  for (int i = 0; i < kStrangers; ++i) {
    strangers.push_back(ConnectTo(AddressOf(store, 0)));
    if (i % 2 == 0) Send(strangers.back(), &hello, sizeof hello);
    if (i % 4 == 1) Send(strangers.back(), &hello, 30);
  }
  EXPECT_THAT(ExchangeBoth(store, *zero), testing::ElementsAre("11", "10"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(Strangers, GreetingsAreBoundedInNumber) {
  EXPECT_EQ(MostGreetings(1024), 256u);
  EXPECT_EQ(MostGreetings(40), 16u);
  EXPECT_EQ(MostGreetings(1 << 20), 4096u);
}

TEST(Strangers, ARankOfAnotherRoundIsToldSo) {
  MemoryStore store;
  auto zero = *ProcessTransport::Create(store, 0, 2, Tcp(kSecret, 2));
  const auto results = ExchangeBoth(store, *zero, Tcp(kSecret, 1));
  for (const std::string& result : results) {  // Either may find out first.
    EXPECT_THAT(result, AllOf(HasSubstr("cannot talk to rank"), HasSubstr("er round")));
  }
}

TEST(Strangers, ARankWithAnotherSecretIsToldSo) {
  for (const std::string& other : {std::string(32, 't'), std::string()}) {
    MemoryStore store;
    auto zero = *ProcessTransport::Create(store, 0, 2, Tcp());
    const auto results = ExchangeBoth(store, *zero, Tcp(other));
    EXPECT_THAT(results[0], HasSubstr("it has another secret"));
  }
}

TEST(Strangers, ASecondProcessOfARankIsAnErrorThatNamesBothAddresses) {
  MemoryStore store;
  auto zero = *ProcessTransport::Create(store, 0, 2, Tcp());
  std::vector<std::string> results(2);
  std::vector<std::thread> both;
  std::string why;
  for (std::string& result : results) {
    both.emplace_back([&] {
      auto one = ProcessTransport::Create(store, 1, 2, Tcp());
      std::byte byte{5};
      Outgoing sent{{.peer = 0, .number = 1}, {&byte, 1}};
      Incoming never{{.peer = 0, .number = 2}, {&byte, 1}};
      (*one)->Start(&sent);
      absl::Status status = (*one)->Wait(sent, In(300s));
      (*one)->Start(&never);
      if (status.ok()) status = (*one)->Wait(never, In(300s));
      result = std::string(status.message());
    });
  }
  std::byte byte{};
  Incoming never{{.peer = 1, .number = 3}, {&byte, 1}};
  zero->Start(&never);
  why = std::string(zero->Wait(never, In(300s)).message());
  for (std::thread& each : both) each.join();
  EXPECT_THAT(why,
              testing::ContainsRegex("two processes say that they are rank 1: 127.0.0.1:[0-9]+ and "
                                     "127.0.0.1:[0-9]+"));
  EXPECT_THAT(results, testing::Each(why));
}

// The peer is a faulty rank that holds the secret.
TEST(Strangers, AHeadOfAnAbsurdMessageIsAnErrorThatNamesItsSender) {
  for (const bool before : {true, false}) {
    MemoryStore store;
    auto zero = *ProcessTransport::Create(store, 0, 2, Tcp());
    FrameHead head;
    head.number = 9;
    head.size = uint64_t{1} << 62;
    if (before) {  // The first bytes of a stranger are no greeting.
      const UniqueFd stranger = ConnectTo(AddressOf(store, 0));
      Send(stranger, &head, sizeof head);
      EXPECT_THAT(ExchangeBoth(store, *zero), testing::ElementsAre("11", "10"));
      continue;
    }
    const GroupPlace one{.group = "default", .secret = kSecret, .rank = 1, .size = 2, .round = 1};
    Acceptor listening = *Acceptor::Open("127.0.0.1", one);
    ASSERT_TRUE(store.Set("hlaunch/comm/default/1", ToText(listening.address())).ok());
    std::atomic<bool> over = false;
    std::thread wrong([&] {
      auto dialing = *Dialing::Begin(AddressOf(store, 0), 0, one, false, 1, In(100s));
      const int fd = dialing->fd();
      while (dialing->Continue() == Dialing::State::kGreeting) std::this_thread::yield();
      ::send(fd, &head, sizeof head, MSG_NOSIGNAL);
      while (!over) listening.Accept();
    });
    std::byte byte{};
    Incoming never{{.peer = 1, .number = 3}, {&byte, 1}};
    zero->Start(&never);
    const absl::Status status = zero->Wait(never, In(300s));
    over = true;
    wrong.join();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("rank 1"), HasSubstr("4611686018427387904 bytes")));
  }
}

}  // namespace
}  // namespace hlaunch
