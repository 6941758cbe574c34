// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rendezvous/store/c10d/c10d_protocol.h"
#include "tests/rendezvous/no_descriptors.h"
#include "tests/rendezvous/raw_connection.h"
#include "tests/rendezvous/recorded_stream.h"
#include "tests/rendezvous/store/c10d/c10d_bytes.h"

namespace hlaunch {
namespace {

std::unique_ptr<C10dServer> Serve(C10dServerOptions options = {}) {
  return *C10dServer::Start(*Listen("127.0.0.1", 0), options);
}

// Makes a round trip: then everything sent before has been executed.
::testing::AssertionResult Answers(RawConnection& connection) {
  connection.Send(Request(C10dOp::kPing, {}, {}, 77));
  const std::string reply = connection.Receive(4);
  if (reply == std::string("\x4d\0\0\0", 4)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got '" << absl::CHexEscape(reply) << "'";
}

// A client of PyTorch 2.2 or later.
struct Client : RawConnection {
  explicit Client(const C10dServer& server) : RawConnection(server.port()) { Send(Validate()); }
};

class C10dServerReplay : public testing::TestWithParam<std::string> {};

TEST_P(C10dServerReplay, AnswersRecordedClientsAsPyTorchsServerDid) {
  const auto server = Serve();
  std::deque<RawConnection> connections;
  constexpr size_t kNobody = static_cast<size_t>(-1);
  size_t unanswered = kNobody;
  for (const RecordedPiece& piece : ReadRecordedStream(GetParam())) {
    while (connections.size() <= piece.connection) connections.emplace_back(server->port());
    RawConnection& connection = connections[piece.connection];
    if (piece.from_client) {
      // No server guarantees an order between two clients, so wait until the first has been served.
      if (unanswered != kNobody && unanswered != piece.connection) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      unanswered = piece.connection;
      connection.Send(piece.bytes);
    } else {
      unanswered = kNobody;
      ASSERT_EQ(absl::BytesToHexString(connection.Receive(piece.bytes.size())),
                absl::BytesToHexString(piece.bytes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, C10dServerReplay, testing::ValuesIn(RecordedStreamNames()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

TEST(C10dServer, AnswersABurstInOrder) {
  const auto server = Serve();
  Client client(*server);
  client.Send(Request(C10dOp::kSet, {"k"}, {"v"}) + Request(C10dOp::kGet, {"k"}) +
              Request(C10dOp::kAdd, {"n"}, {}, 5) + Request(C10dOp::kWait, {"k", "n"}) +
              Request(C10dOp::kListKeys) + Request(C10dOp::kGet, {"missing"}));
  const std::string expected = Text("v") + Int64(5) + Byte(0);
  EXPECT_EQ(client.Receive(expected.size()), expected);
  const std::string keys = client.Receive(8 + 9 + 9);
  EXPECT_TRUE(keys == Int64(2) + Text("k") + Text("n") || keys == Int64(2) + Text("n") + Text("k"));
  EXPECT_EQ(client.Receive(8), Text(""));
}

TEST(C10dServer, RequestsBehindAWaitRunAfterIt) {
  const auto server = Serve();
  Client first(*server);
  Client second(*server);
  first.Send(Request(C10dOp::kWait, {"k"}) + Request(C10dOp::kGet, {"k"}) +
             Request(C10dOp::kAdd, {"n"}, {}, 1));
  second.Send(Request(C10dOp::kSet, {"k"}, {"v"}));
  const std::string expected = Byte(0) + Text("v") + Int64(1);
  EXPECT_EQ(first.Receive(expected.size()), expected);
}

TEST(C10dServer, ValidateMaySplitAnywhere) {
  const auto server = Serve();
  RawConnection client(server->port());
  RawConnection other(server->port());
  other.Send(Validate());
  const std::string hello = Validate();
  for (const char byte : hello) {
    client.Send(absl::string_view(&byte, 1));
    EXPECT_TRUE(Answers(other));  // The server has seen only that byte.
  }
  EXPECT_TRUE(Answers(client));
}

TEST(C10dServer, WakesAllWhoWait) {
  const auto server = Serve();
  std::deque<Client> waiters;
  for (int i = 0; i < 50; ++i) {
    waiters.emplace_back(*server).Send(Request(C10dOp::kWait, {"a", "b"}));
  }
  Client setter(*server);
  setter.Send(Request(C10dOp::kMultiSet, {"b", "a"}, {"", ""}));
  for (Client& waiter : waiters) EXPECT_EQ(waiter.Receive(1), Byte(0));
}

TEST(C10dServer, NothingFollowsACancelledWait) {
  const auto server = Serve();
  Client waiter(*server);
  Client setter(*server);
  waiter.Send(Request(C10dOp::kWait, {"k"}));
  waiter.Send(Request(C10dOp::kCancelWait));
  EXPECT_EQ(waiter.Receive(1), Byte(1));
  setter.Send(Request(C10dOp::kSet, {"k"}, {"v"}));
  EXPECT_TRUE(Answers(setter));
  EXPECT_TRUE(Answers(waiter));  // No late 0 comes.
}

TEST(C10dServer, CancelThatComesTooLateIsStillAnswered) {
  const auto server = Serve();
  Client waiter(*server);
  waiter.Send(Request(C10dOp::kSet, {"k"}, {"v"}) + Request(C10dOp::kWait, {"k"}) +
              Request(C10dOp::kCancelWait));
  EXPECT_EQ(waiter.Receive(2), Byte(0) + Byte(1));
  EXPECT_TRUE(Answers(waiter));
}

TEST(C10dServer, BarrierReleasesAllAtTheLastArrival) {
  const auto server = Serve();
  Client first(*server);
  Client second(*server);
  first.Send(Request(C10dOp::kBarrier, {"b"}, {}, 2));
  second.Send(Request(C10dOp::kBarrier, {"b"}, {}, 2));
  EXPECT_EQ(first.Receive(1), Byte(0));
  EXPECT_EQ(second.Receive(1), Byte(0));
}

TEST(C10dServer, QueuedItemOfADeadClientGoesToTheNext) {
  const auto server = Serve();
  auto first = std::make_unique<Client>(*server);
  first->Send(Request(C10dOp::kWait, {"q"}));
  Client second(*server);
  EXPECT_TRUE(Answers(second));
  second.Send(Request(C10dOp::kWait, {"q"}));
  Client pusher(*server);
  pusher.Send(Request(C10dOp::kQueuePush, {"q"}, {"item"}));
  EXPECT_EQ(first->Receive(1), Byte(0));
  first.reset();
  EXPECT_EQ(second.Receive(1), Byte(0));
  second.Send(Request(C10dOp::kQueuePop, {"q"}));
  EXPECT_EQ(second.Receive(8 + 12), Int64(1) + Text("item"));
}

TEST(C10dServer, OldClientThatGoesOnHasGivenUpItsWait) {
  const auto server = Serve();
  RawConnection old_client(server->port());
  std::string wait = Byte(5);
  PutInt64(&wait, 1);
  PutText(&wait, "k");
  old_client.Send(wait + Byte(6));
  EXPECT_EQ(old_client.Receive(8), Int64(0));
  Client setter(*server);
  setter.Send(Request(C10dOp::kSet, {"k"}, {"v"}));
  EXPECT_TRUE(Answers(setter));
  old_client.Send(Byte(6));
  EXPECT_EQ(old_client.Receive(8), Int64(1));  // No late 0 comes first.
}

TEST(C10dServer, OldDeleteIsAnsweredAfterSilence) {
  C10dServerOptions options;
  options.silence = std::chrono::milliseconds(1);
  const auto server = Serve(options);
  RawConnection old_client(server->port());
  old_client.Send(Byte(0) + Text("k") + Text("v") + Byte(8) + Text("k"));
  EXPECT_EQ(old_client.Receive(8), Int64(1));
}

TEST(C10dServer, TellsAWatcherOfEachChange) {
  const auto server = Serve();
  RawConnection watcher(server->port());
  watcher.Send(Byte(7) + Text("k"));
  EXPECT_EQ(watcher.Receive(1), Byte(kC10dCallbackRegistered));
  Client setter(*server);
  setter.Send(Request(C10dOp::kSet, {"k"}, {"v"}) + Request(C10dOp::kSet, {"other"}, {"v"}) +
              Request(C10dOp::kCompareSet, {"k"}, {"no", "w"}) +
              Request(C10dOp::kCompareSet, {"k"}, {"v", "w"}) + Request(C10dOp::kDeleteKey, {"k"}) +
              Request(C10dOp::kDeleteKey, {"k"}));
  const std::string expected = Byte(kC10dKeyCreated) + Text("k") + Text("") + Text("v") +
                               Byte(kC10dKeyUpdated) + Text("k") + Text("v") + Text("w") +
                               Byte(kC10dKeyDeleted) + Text("k") + Text("w") + Text("");
  EXPECT_EQ(watcher.Receive(expected.size()), expected);
}

TEST(C10dServer, WatcherThatDoesNotReadIsClosedAloneAtLast) {
  const auto server = Serve();
  RawConnection watcher(server->port());
  watcher.Send(Byte(7) + Text("k"));
  EXPECT_EQ(watcher.Receive(1), Byte(kC10dCallbackRegistered));
  Client setter(*server);
  const std::string value(8 << 20, 'x');
  for (int i = 0; i < 12; ++i) setter.Send(Request(C10dOp::kSet, {"k"}, {value}));
  EXPECT_TRUE(Answers(setter));
  const size_t told = watcher.Receive(size_t{12} * 16 << 20).size();
  EXPECT_LT(told, size_t{12} * 16 << 20);
}

TEST(C10dServer, ClosesOnlyTheConnectionThatSendsNonsense) {
  const auto server = Serve();
  Client good(*server);
  RawConnection web(server->port());
  web.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(web.Ends());
  Client long_key(*server);
  long_key.Send(Byte(3) + Int64(kMaxKeyBytes + 1));
  EXPECT_TRUE(long_key.Ends());
  Client adds_to_text(*server);
  adds_to_text.Send(Request(C10dOp::kSet, {"k"}, {"x"}) + Request(C10dOp::kAdd, {"k"}, {}, 1));
  EXPECT_TRUE(adds_to_text.Ends());
  EXPECT_TRUE(Answers(good));
}

TEST(C10dServer, ServesWhatItsOwnLimitsAllow) {
  C10dServerOptions options;
  options.limits.key_bytes = 2 * kMaxKeyBytes;
  options.limits.value_bytes = 2 * kMaxValueBytes;
  const auto server = Serve(options);
  Client client(*server);
  const std::string key(options.limits.key_bytes, 'k');
  const std::string value(options.limits.value_bytes, 'v');
  client.Send(Request(C10dOp::kSet, {key}, {value}) + Request(C10dOp::kGet, {key}));
  EXPECT_TRUE(client.Receive(8 + value.size()) == Text(value));
  client.Send(Byte(1) + Int64(static_cast<int64_t>(key.size() + 1)));
  EXPECT_TRUE(client.Ends());
}

TEST(C10dServer, RefusesAReplyWithoutBounds) {
  const auto server = Serve();
  Client client(*server);
  client.Send(Request(C10dOp::kSet, {"k"}, {std::string(1 << 20, 'x')}) +
              Request(C10dOp::kMultiGet, std::vector<std::string>(65, "k")));
  EXPECT_TRUE(client.Ends());
}

TEST(C10dServer, ClientThatDoesNotReadHoldsUpNobody) {
  const auto server = Serve();
  Client slow(*server);
  const std::string value(1 << 20, 'x');
  constexpr int kGets = 64;
  slow.Send(Request(C10dOp::kSet, {"k"}, {value}));
  for (int i = 0; i < kGets; ++i) slow.Send(Request(C10dOp::kGet, {"k"}));
  Client quick(*server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Answers(quick));
  for (int i = 0; i < kGets; ++i) {
    ASSERT_EQ(slow.Receive(8), Int64(1 << 20));
    ASSERT_TRUE(slow.Receive(value.size()) == value) << i;
  }
  EXPECT_TRUE(Answers(slow));
}

TEST(C10dServer, ServesThisHostWhoeverElseIsRefused) {
  C10dServerOptions options;
  options.access = *ParseStoreAllow("192.0.2.1");
  const auto server = Serve(options);
  Client client(*server);
  EXPECT_TRUE(Answers(client));
}

// The end of a socket pair has no source address, so none that is admitted.
TEST(C10dServer, ClosesWhoIsNotAdmittedUnread) {
  C10dServerOptions options;
  options.access = *ParseStoreAllow("192.0.2.1");
  const auto server = Serve(options);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  RawConnection stranger{UniqueFd(ends[0])};
  server->Adopt(UniqueFd(ends[1]));
  EXPECT_TRUE(stranger.Ends());
}

TEST(C10dServer, RequestsBehindUnreadRepliesAndAWaitRunOnceItEnds) {
  C10dServerOptions options;
  options.max_unread_bytes = 1 << 10;
  const auto server = Serve(options);
  Client slow(*server);
  Client setter(*server);
  const std::string value(4 << 20, 'x');
  setter.Send(Request(C10dOp::kSet, {"big"}, {value}));
  ASSERT_TRUE(Answers(setter));
  slow.Send(Request(C10dOp::kWait, {"k"}) + Request(C10dOp::kGet, {"big"}) +
            Request(C10dOp::kWait, {"l"}) + Request(C10dOp::kAdd, {"n"}, {}, 1) +
            Request(C10dOp::kAdd, {"n"}, {}, 1));
  setter.Send(Request(C10dOp::kSet, {"k"}, {"v"}));
  EXPECT_EQ(slow.Receive(1), Byte(0));
  EXPECT_EQ(slow.Receive(8 + value.size()), Text(value));
  setter.Send(Request(C10dOp::kSet, {"l"}, {"v"}));
  EXPECT_EQ(slow.Receive(17), Byte(0) + Int64(1) + Int64(2));
}

TEST(C10dServer, AnswersALongBurstInOrderWhileOthersAreServed) {
  const auto server = Serve();
  Client burst(*server);
  Client quick(*server);
  std::string adds;
  for (int i = 0; i < 20'000; ++i) adds += Request(C10dOp::kAdd, {"n"}, {}, 1);
  std::thread sender([&] { burst.Send(adds); });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Answers(quick));
  for (int i = 1; i <= 20'000; ++i) ASSERT_EQ(burst.Receive(8), Int64(i));
  sender.join();
}

TEST(C10dServer, TakesTheLastWordsOfAClientThatHasGone) {
  const auto server = Serve();
  {
    Client gone(*server);
    for (int i = 0; i < 4; ++i) {
      gone.Send(Request(C10dOp::kSet, {absl::StrCat(i)}, {std::string(1 << 20, 'x')}));
    }
  }
  Client other(*server);
  other.Send(Request(C10dOp::kWait, {"0", "1", "2", "3"}));
  EXPECT_EQ(other.Receive(1), Byte(0));
}

TEST(C10dServer, ResetClosesAllAndForgetsAll) {
  const auto server = Serve();
  Client client(*server);
  Client waiter(*server);
  RawConnection silent(server->port());
  client.Send(Request(C10dOp::kSet, {"k"}, {"v"}) + Request(C10dOp::kQueuePush, {"q"}, {"v"}));
  waiter.Send(Request(C10dOp::kWait, {"later"}));
  EXPECT_TRUE(Answers(client));
  server->Reset();
  EXPECT_TRUE(client.Ends());
  EXPECT_TRUE(waiter.Ends());
  EXPECT_TRUE(silent.Ends());
  Client next(*server);
  next.Send(Request(C10dOp::kNumKeys) + Request(C10dOp::kCheck, {"q"}));
  EXPECT_EQ(next.Receive(9), Int64(0) + Byte(1));
}

TEST(C10dServer, ServesAConnectionThatAnotherAccepted) {
  const auto server = *C10dServer::Start(std::nullopt);
  EXPECT_EQ(server->port(), 0);
  const auto listener = *Listen("127.0.0.1", 0);
  RawConnection client(listener.port);
  client.Send(Validate() + Request(C10dOp::kAdd, {"n"}, {}, 1));
  pollfd entry{listener.fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 100'000), 1);
  UniqueFd accepted(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  char first = 1;
  ASSERT_EQ(::recv(accepted.get(), &first, 1, MSG_PEEK), 1);
  server->Adopt(std::move(accepted));
  EXPECT_EQ(client.Receive(8), Int64(1));
  server->Reset();
  EXPECT_TRUE(client.Ends());
}

// An unconnected socket bound to 127.0.0.`last`.
UniqueFd SocketOf(uint8_t last) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f000000 + last);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(C10dServer, ClosesStrangersThatSayNothingAndNoSilentSiblings) {
  C10dServerOptions options;
  options.max_silent = 2;
  options.silent_patience = std::chrono::milliseconds(1);
  const auto server = Serve(options);
  Client honest(*server);
  RawConnection sibling(server->port());  // PyTorch before 2.1 opens one.
  ASSERT_TRUE(Answers(honest));
  std::deque<RawConnection> strangers;
  for (uint8_t i = 2; i < 6; ++i) {
    strangers.emplace_back(SocketOf(i));
    strangers.back().Connect(server->port());
  }
  EXPECT_TRUE(strangers[0].Ends());
  EXPECT_TRUE(strangers[1].Ends());
  for (RawConnection* stays : {&sibling, &strangers[2], &strangers[3]}) {
    stays->Send(Validate());
    EXPECT_TRUE(Answers(*stays));
  }
  EXPECT_TRUE(Answers(honest));
}

TEST(C10dServer, OutlivesRunningOutOfDescriptors) {
  const auto server = Serve();
  RawConnection client(UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  {
    const NoDescriptors none;
    client.Connect(server->port());
    client.Send(Validate());
    pollfd entry{client.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 30), 0);  // It waits in the kernel's queue.
  }
  EXPECT_TRUE(Answers(client));
}

TEST(C10dServer, EndsWithClientsConnected) {
  auto server = Serve();
  Client waiter(*server);
  waiter.Send(Request(C10dOp::kWait, {"k"}));
  EXPECT_EQ(waiter.fd() >= 0, true);
  server.reset();
  EXPECT_TRUE(waiter.Ends());
}

}  // namespace
}  // namespace hlaunch
