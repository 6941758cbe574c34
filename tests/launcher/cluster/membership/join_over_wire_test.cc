// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests that a host joins a head over the real wire and connects with what it was given.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "launcher/cluster/membership/found_cluster.h"
#include "launcher/cluster/membership/join_cluster.h"
#include "proto/base/mutex.h"
#include "rendezvous/cluster/membership/join_registrar.h"
#include "rendezvous/net/cluster_wire/ask_as_stranger.h"
#include "rendezvous/net/cluster_wire/cluster_link.h"
#include "rendezvous/net/cluster_wire/cluster_server.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(60);

// A head's registrar behind its server, in its own thread.
class HeadThread {
 public:
  explicit HeadThread(const std::string& folder)
      : folder_(*TrustFolder::Open(folder)), registrar_(*ReadJoinRegistrar(folder_)) {
    ListeningSocket listener = *Listen("127.0.0.1", 0);
    port_ = listener.port;
    ClusterServer::Events events;
    events.admits = [this](const CertifiedHost& host) {
      return registrar_.Admits(host, std::time(nullptr)).ok();
    };
    events.came = [this](uint64_t, const std::string& host) { came_[host]++; };
    events.said = [](uint64_t, Envelope) {};
    events.left = [](uint64_t) {};
    events.stranger = [this](uint64_t id, const Envelope& question, const std::string& address) {
      server_->Send(id, Answer(question, address));
    };
    server_ = *ClusterServer::Start(loop_, std::move(listener.fd), *ReadIdentity(folder_, kOfHead),
                                    std::move(events));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~HeadThread() {
    asio::post(loop_, [this] { loop_.stop(); });
    thread_.join();
  }

  Endpoint place() const { return {"127.0.0.1", port_}; }

  // The result of `use` on the registrar, in the head's thread.
  template <typename Use>
  auto With(Use use) {
    std::optional<decltype(use(registrar_))> result;
    Mutex mu;
    CondVar done;
    asio::post(loop_, [&] {
      auto made = use(registrar_);
      MutexLock lock(&mu);
      result.emplace(std::move(made));
      done.SignalAll();
    });
    MutexLock lock(&mu);
    while (!result) done.Wait(&mu);
    return *result;
  }
  // How often a host of this name was let in.
  int Came(const std::string& host) {
    return With([&](JoinRegistrar&) { return came_[host]; });
  }
  std::string Token() {
    return With(
        [](JoinRegistrar& registrar) { return TextOf(registrar.MakeToken(std::time(nullptr))); });
  }

 private:
  Envelope Answer(const Envelope& question, const std::string& address) {
    const auto read = ReadJoinQuestion(question.body);
    if (!read.ok()) return ErrorTo(question, read.status());
    const auto made = registrar_.Join(*read, address, false, std::time(nullptr));
    if (!made.ok()) return ErrorTo(question, made.status());
    return AnswerTo(question,
                    {{"certificate", *made}, {"authority", ReadAuthority(folder_)->certificate}});
  }

  const TrustFolder folder_;
  JoinRegistrar registrar_;  // Belongs to the thread, like the next member.
  std::map<std::string, int> came_;
  asio::io_context loop_;
  std::unique_ptr<ClusterServer> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

class JoinOverWire : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = absl::StrCat(testing::TempDir(), "wire.XXXXXX");
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
    const ClusterPaths head = PathsOf("head");
    std::ofstream(head.passwd) << "hlaunch-head:x:" << ::geteuid() << ":" << ::getegid()
                               << "::/:/bin/false\n";
    const auto made = FoundCluster(head, "node0", "127.0.0.1:1", std::time(nullptr));
    ASSERT_TRUE(made.ok()) << made.status();
    first_token_ = made->token;
    head_.emplace(head.head);
  }
  void TearDown() override {
    head_.reset();
    fs::remove_all(root_);
  }

  ClusterPaths PathsOf(const std::string& host) const {
    fs::create_directory(absl::StrCat(root_, "/", host));
    const std::string folder = absl::StrCat(root_, "/", host);
    return {folder + "/lib", folder + "/head", folder + "/passwd", folder + "/units"};
  }
  absl::Status Join(const std::string& host, const std::string& token) const {
    const auto ask = [](const Endpoint& head, const std::string& pin, const Envelope& question) {
      return AskAsStranger(head.host, head.port, pin, question, kPatience);
    };
    return JoinCluster(PathsOf(host), {head_->place(), token, host}, ask,
                       [] { return std::time(nullptr); });
  }
  // Whether the head admits a host that shows the identity in this folder.
  bool IsLetIn(const std::string& folder) {
    const HostIdentity identity = *ReadIdentity(*TrustFolder::Open(PathsOf(folder).host), kOfHost);
    const std::string host = CheckHostIdentity(identity)->host;
    const int before = head_->Came(host);
    asio::io_context loop;
    bool down = false;
    ClusterLink::Events events;
    events.up = [] {};
    events.said = [](Envelope) {};
    events.down = [&](const absl::Status&) { down = true; };
    const ClusterLink link(loop, head_->place().host, head_->place().port, identity, events);
    const Instant deadline = MonotonicClock().Now() + kPatience;
    while (!down && head_->Came(host) == before && MonotonicClock().Now() < deadline) {
      loop.run_one_for(std::chrono::milliseconds(10));
    }
    return head_->Came(host) > before;
  }

  std::string root_;
  std::string first_token_;
  std::optional<HeadThread> head_;
};

TEST_F(JoinOverWire, AHostIsLetInUntilItIsThrownOut) {
  const absl::Status joined = Join("node1", first_token_);
  ASSERT_TRUE(joined.ok()) << joined;
  EXPECT_TRUE(IsLetIn("node1"));
  ASSERT_TRUE(head_
                  ->With([](JoinRegistrar& registrar) {
                    return registrar.ThrowOut("node1", std::time(nullptr));
                  })
                  .ok());
  EXPECT_FALSE(IsLetIn("node1"));
  // A stolen copy of the old identity is useless once the host has joined again.
  fs::rename(root_ + "/node1", root_ + "/stolen");
  ASSERT_TRUE(Join("node1", head_->Token()).ok());
  EXPECT_TRUE(IsLetIn("node1"));
  EXPECT_FALSE(IsLetIn("stolen"));
}

TEST_F(JoinOverWire, ATokenIsTakenOnce) {
  ASSERT_TRUE(Join("node1", first_token_).ok());
  const absl::Status replayed = Join("node2", first_token_);
  EXPECT_EQ(replayed.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(replayed.message()), HasSubstr("used already, by node1"));
}

TEST_F(JoinOverWire, ATokenOfAnotherClusterIsNotEvenShown) {
  const std::string pin = KeyPinOf(MakeAuthority(std::time(nullptr))->certificate);
  const absl::Status joined = Join("node1", TextOf(MakeJoinToken(pin)));
  EXPECT_EQ(joined.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(joined.message()), HasSubstr("of another cluster than the head there"));
}

TEST_F(JoinOverWire, AWrongTokenIsRefused) {
  JoinToken token = *ReadJoinToken(first_token_);
  token.secret = MakeJoinToken(token.pin).secret;
  EXPECT_EQ(Join("node1", TextOf(token)).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(Join("node1", first_token_).ok());
}

}  // namespace
}  // namespace hlaunch
