// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "rendezvous/net/socket/listen.h"
#include "tests/rendezvous/raw_connection.h"

namespace hlaunch {
namespace {

TEST(IsAddressLiteral, KnowsBothFamiliesAndNoNames) {
  EXPECT_TRUE(IsAddressLiteral("10.1.2.3"));
  EXPECT_TRUE(IsAddressLiteral("fd00::1"));
  EXPECT_TRUE(IsAddressLiteral("fe80::1%lo"));
  EXPECT_FALSE(IsAddressLiteral("localhost"));
  EXPECT_FALSE(IsAddressLiteral("[::1]"));
  EXPECT_FALSE(IsAddressLiteral(""));
}

TEST(LocalAddressTowards, IsLoopbackOnTheSameHost) {
  EXPECT_EQ(LocalAddressTowards("127.0.0.1").value(), "127.0.0.1");
  EXPECT_EQ(LocalAddressTowards("::1").value(), "::1");
}

TEST(LocalAddressTowards, RefusesNames) {
  EXPECT_EQ(LocalAddressTowards("localhost").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(IsOwnAddress, KnowsThisHostsFromOthers) {
  EXPECT_TRUE(IsOwnAddress("127.0.0.1"));
  EXPECT_FALSE(IsOwnAddress("192.0.2.1"));  // An address reserved for documents.
  EXPECT_FALSE(IsOwnAddress("node0"));
  EXPECT_FALSE(IsOwnAddress(""));
}

TEST(ResolveHost, PutsIpv4First) {
  const auto found = ResolveHost("localhost");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->front(), "127.0.0.1");
}

TEST(ResolveHost, TakesLiterals) {
  EXPECT_THAT(ResolveHost("::1").value(), testing::ElementsAre("::1"));
}

TEST(ResolveHost, SaysThatAnUnknownNameMayComeLater) {
  const absl::Status status = ResolveHost("no-such-host.invalid").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no-such-host.invalid"));
}

TEST(ResolveHost, RefusesTheEmptyName) {
  EXPECT_EQ(ResolveHost("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TryToConnect, TellsTakenFromRefusedFromNoAddress) {
  for (const char* loopback : {"127.0.0.1", "::1"}) {
    uint16_t port = 0;
    {
      const auto listening = Listen(loopback, 0);
      ASSERT_TRUE(listening.ok()) << listening.status();
      port = listening->port;
      EXPECT_EQ(TryToConnect(loopback, port, std::chrono::seconds(10)), 0);
    }
    EXPECT_EQ(TryToConnect(loopback, port, std::chrono::seconds(10)), ECONNREFUSED);
  }
  EXPECT_EQ(TryToConnect("localhost", 1, std::chrono::seconds(10)), EINVAL);
}

// Sends a signal every millisecond while it lives. The signal interrupts blocking calls.
class ManySignals {
 public:
  ManySignals() {
    struct sigaction ignore = {};
    ignore.sa_handler = [](int) {};
    EXPECT_EQ(::sigaction(SIGALRM, &ignore, &before_), 0);
    const itimerval often = {{0, 1000}, {0, 1000}};
    EXPECT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  ManySignals(const ManySignals&) = delete;
  ~ManySignals() {
    const itimerval never = {};
    EXPECT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
    EXPECT_EQ(::sigaction(SIGALRM, &before_, nullptr), 0);
  }

 private:
  struct sigaction before_ = {};
};

TEST(TryToConnect, IsAsPatientIfSignalsCome) {
  const auto full = Listen("127.0.0.1", 0);
  ASSERT_TRUE(full.ok()) << full.status();
  ASSERT_EQ(::listen(full->fd.get(), 0), 0);
  const RawConnection takes_the_only_place(full->port);
  const ManySignals signals;
  const Instant began = MonotonicClock().Now();
  EXPECT_EQ(TryToConnect("127.0.0.1", full->port, std::chrono::milliseconds(50)), ETIMEDOUT);
  EXPECT_GE(MonotonicClock().Now() - began, std::chrono::milliseconds(50));
}

TEST(HostPort, PutsBracketsAroundIpv6) {
  EXPECT_EQ(HostPort("::1", 80), "[::1]:80");
  EXPECT_EQ(HostPort("10.0.0.1", 80), "10.0.0.1:80");
}

}  // namespace
}  // namespace hlaunch
