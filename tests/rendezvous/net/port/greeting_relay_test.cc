// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/greeting_relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "proto/base/mutex.h"
#include "rendezvous/net/port/front.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/job_token.h"
#include "rendezvous/net/trust/token_greeting.h"
#include "tests/rendezvous/raw_connection.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

// Connects like gRPC.
UniqueFd ConnectTo(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  return fd;
}

// A front and the connections that it hands to gRPC.
class Rendezvous {
 public:
  explicit Rendezvous(const Trust& trust) {
    ListeningSocket listening = Listen("127.0.0.1", 0).value();
    port_ = listening.port;
    Front::Options options;
    options.trust = trust;
    options.peers = &peers_;
    options.grpc = [this](UniqueFd fd, const std::shared_ptr<ConnectionGuard>&) {
      MutexLock lock(&mu_);
      ::fcntl(fd.get(), F_SETFL, 0);  // A test's own end may block.
      handed_ = std::move(fd);
      changed_.SignalAll();
    };
    front_ = std::make_unique<Front>(std::move(listening.fd), std::move(options));
  }

  uint16_t port() const { return port_; }
  std::unique_ptr<GreetingRelay> RelayOf(const Trust& trust) const {
    return GreetingRelay::Start(trust, "127.0.0.1", port_).value();
  }
  RawConnection Next() {
    MutexLock lock(&mu_);
    while (!handed_.valid()) changed_.Wait(&mu_);
    return RawConnection(std::move(handed_));
  }
  bool handed() {
    MutexLock lock(&mu_);
    return handed_.valid();
  }

 private:
  uint16_t port_ = 0;
  PeerJobs peers_;
  Mutex mu_;
  CondVar changed_;
  UniqueFd handed_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Front> front_;
};

TEST(GreetingRelay, CarriesWhatBothSay) {
  for (const Trust& trust : {Holder(), Holder(MakeJobToken(kToken, "job").value())}) {
    Rendezvous rendezvous(Holder());
    const auto relay = rendezvous.RelayOf(trust);
    RawConnection client(ConnectTo(relay->name()));
    client.Send("PRI * HTTP/2.0");
    RawConnection server = rendezvous.Next();
    EXPECT_EQ(server.Receive(14), "PRI * HTTP/2.0");
    server.Send("SETTINGS");
    EXPECT_EQ(client.Receive(8), "SETTINGS");
    EXPECT_TRUE(relay->trouble().ok());
  }
}

TEST(GreetingRelay, CarriesSeveralConnections) {
  Rendezvous rendezvous(Holder());
  const auto relay = rendezvous.RelayOf(Holder());
  RawConnection first(ConnectTo(relay->name()));
  RawConnection first_server = rendezvous.Next();
  RawConnection second(ConnectTo(relay->name()));
  RawConnection second_server = rendezvous.Next();
  first.Send("first");
  second.Send("second");
  EXPECT_EQ(first_server.Receive(5), "first");
  EXPECT_EQ(second_server.Receive(6), "second");
}

// The relay slows the server down for a client that does not read; a client may not send that much.
TEST(GreetingRelay, CarriesMuchThroughASlowReader) {
  Rendezvous rendezvous(Holder());
  const auto relay = rendezvous.RelayOf(Holder());
  RawConnection client(ConnectTo(relay->name()));
  RawConnection server = rendezvous.Next();
  std::string much(16 << 20, '\0');
  for (size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>((i >> 8) ^ i);
  std::thread writer([&] { server.Send(much); });
  const std::string request = much.substr(0, 200 << 10);
  client.Send(request);
  const bool asked = server.Receive(request.size()) == request;
  const bool answered = client.Receive(much.size()) == much;
  writer.join();
  EXPECT_TRUE(asked);
  EXPECT_TRUE(answered);
}

TEST(GreetingRelay, AnEndIsTheEndForTheOtherSideToo) {
  Rendezvous rendezvous(Holder());
  const auto relay = rendezvous.RelayOf(Holder());
  {
    RawConnection client(ConnectTo(relay->name()));
    RawConnection server = rendezvous.Next();
    client.Send("last words");
    ::shutdown(client.fd(), SHUT_WR);
    EXPECT_EQ(server.Receive(10), "last words");
    EXPECT_TRUE(server.Ends());
  }
  RawConnection client(ConnectTo(relay->name()));
  {
    RawConnection server = rendezvous.Next();
    server.Send("last words");
  }
  EXPECT_EQ(client.Receive(10), "last words");
  EXPECT_TRUE(client.Ends());
}

// The error that a client gets when the relay ends its connection.
absl::Status TroubleWith(GreetingRelay& relay) {
  RawConnection client(ConnectTo(relay.name()));
  client.Send("PRI * HTTP/2.0");
  EXPECT_TRUE(client.Ends());
  return relay.trouble();
}

TEST(GreetingRelay, SaysWhoRefusedAndWhy) {
  const std::pair<Trust, const char*> cases[] = {
      {Holder(kOtherToken), "this node's token is not the rendezvous' token"},
      {Trust::OfToken(kToken).value(), "this node has --tls off and the rendezvous encrypts"},
      {Trust(), "this node has a token and the rendezvous has none"},
  };
  for (const auto& [theirs, words] : cases) {
    Rendezvous rendezvous(theirs);
    const auto relay = rendezvous.RelayOf(Holder());
    const absl::Status trouble = TroubleWith(*relay);
    EXPECT_EQ(trouble.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(trouble.message()), HasSubstr(words));
    EXPECT_FALSE(rendezvous.handed());
  }
  Rendezvous in_clear(Holder());
  const auto relay = in_clear.RelayOf(Trust::OfToken(kToken).value());
  EXPECT_THAT(std::string(TroubleWith(*relay).message()),
              HasSubstr("this node encrypts (--tls on) and the rendezvous has --tls off"));
}

TEST(GreetingRelay, SaysWhyThereIsNoConnection) {
  uint16_t port = 0;
  {
    const ListeningSocket gone = Listen("127.0.0.1", 0).value();
    port = gone.port;
  }
  const auto relay = GreetingRelay::Start(Holder(), "127.0.0.1", port).value();
  const absl::Status trouble = TroubleWith(*relay);
  EXPECT_EQ(trouble.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(trouble.message(), "Connection refused");
}

// The trouble with a server that accepts a connection and then runs `acts`.
absl::Status TroubleWithOneWho(const std::function<void(RawConnection&)>& acts) {
  const ListeningSocket listening = Listen("127.0.0.1", 0).value();
  const auto relay = GreetingRelay::Start(Holder(), "127.0.0.1", listening.port).value();
  std::thread other([&] {
    pollfd entry{listening.fd.get(), POLLIN, 0};
    ::poll(&entry, 1, -1);
    RawConnection accepted(UniqueFd(::accept(listening.fd.get(), nullptr, nullptr)));
    EXPECT_EQ(accepted.Receive(8), std::string("hlaunch\x01"));
    acts(accepted);
  });
  const absl::Status trouble = TroubleWith(*relay);
  other.join();
  return trouble;
}

TEST(GreetingRelay, KnowsAnotherProgramFromARendezvous) {
  const size_t rest = ClientGreeting(Holder(), NewNonce()).hello().size() - 8;
  const absl::Status other = TroubleWithOneWho([rest](RawConnection& client) {
    client.Receive(rest);
    client.Send("HTTP/1.1 400 Bad Request");
  });
  EXPECT_THAT(std::string(other.message()), HasSubstr("not a rendezvous, or another version"));
  const absl::Status older =
      TroubleWithOneWho([rest](RawConnection& client) { client.Receive(rest); });
  EXPECT_THAT(std::string(older.message()), HasSubstr("or another version of hlaunch"));
  EXPECT_EQ(older.code(), absl::StatusCode::kUnavailable);
}

// A server that answers without the token gets no proof.
TEST(GreetingRelay, ProvesNothingToAnImpostor) {
  const size_t rest = ClientGreeting(Holder(), NewNonce()).hello().size() - 8;
  const absl::Status trouble = TroubleWithOneWho([rest](RawConnection& client) {
    client.Send(std::string("hlaunch\x02") + std::string(kAnswerBytes - 8, 'x'));
    EXPECT_EQ(client.Receive(1 << 10).size(), rest) << "Nothing follows its hello.";
  });
  EXPECT_EQ(trouble.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(trouble.message()), HasSubstr("does not hold this node's token"));
}

TEST(GreetingRelay, ServesNoOtherProcess) {
  Rendezvous rendezvous(Holder());
  const auto relay = rendezvous.RelayOf(Holder());
  const pid_t child = ::fork();
  if (child == 0) {
    const UniqueFd fd = ConnectTo(relay->name());
    char byte = 0;
    ::_exit(::recv(fd.get(), &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(rendezvous.handed());
}

}  // namespace
}  // namespace hlaunch
