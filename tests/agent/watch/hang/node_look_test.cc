// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/node_look.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/watch/hang/tap.h"
#include "asio/io_context.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;

constexpr char kRecord[] =
    R"({"entries":[{"collective_seq_id":3,"input_dtypes":["Float"],"input_sizes":[[4]],)"
    R"("is_p2p":false,"process_group":["0","default_pg"],"profiling_name":"gloo:all_reduce",)"
    R"("retired":true,"state":"scheduled"}],"pg_config":{},)"
    R"("pg_status":{"0":{"last_enqueued_collective":"3"}},"version":"2.10"})";

// The control server of rank 0, whose process is this one.
class FakeServer {
 public:
  // Has `answer` answer each request; if it is empty there is no such question. A request without a
  // value is never answered.
  using Answerer = std::function<std::optional<std::string>(absl::string_view request)>;
  FakeServer(const std::string& tap, Answerer answer)
      : answer_(std::move(answer)), listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = TapSocketPath(tap, 0, ::getpid());
    std::memcpy(address.sun_path, path.c_str(), path.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void Serve() {
    std::vector<UniqueFd> waiting;
    while (true) {
      UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
      if (!peer.valid()) return;
      char question[1024] = "";
      if (::read(peer.get(), question, sizeof question - 1) <= 0) continue;
      const std::optional<std::string> body = answer_(question);
      if (!body) {
        waiting.push_back(std::move(peer));
        continue;
      }
      const std::string answer =
          absl::StrCat("HTTP/1.1 ", body->empty() ? "404 Not Found" : "200 OK",
                       "\r\nContent-Length: ", body->size(), "\r\n\r\n", *body);
      const ssize_t sent = ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      // The asker does, on a busy machine or if there is too much.
      const bool gave_up = (sent < 0 && errno == EPIPE) || answer.size() > 8 << 20;
      EXPECT_TRUE(sent == static_cast<ssize_t>(answer.size()) || gave_up);
    }
  }

  const Answerer answer_;
  const UniqueFd listener_;
  std::thread thread_;
};

// The server of a rank whose interpreter is held: what needs it is never answered.
class HeldRank {
 public:
  explicit HeldRank(const std::string& tap, std::string record = kRecord)
      : record_(std::move(record)),
        server_(tap, [this](absl::string_view asked) { return Answer(asked); }) {}

  int records() const { return records_; }

 private:
  std::optional<std::string> Answer(absl::string_view asked) {
    if (absl::StartsWith(asked, "GET /handler/ ")) return R"(["fr_trace_json"])";
    if (asked.find("fr_trace_json") != asked.npos) {
      ++records_;
      return record_;
    }
    if (asked.find("wait_counter_values") != asked.npos) return "{}";
    return std::nullopt;
  }

  const std::string record_;
  std::atomic<int> records_ = 0;  // That were asked for.
  FakeServer server_;
};

void LookOnce(asio::io_context& loop, NodeLook& look) {
  bool done = false;
  look.Begin([&done] { done = true; });
  loop.restart();
  while (!done && loop.run_one() > 0) {
  }
  EXPECT_TRUE(done);
}

TEST(NodeLook, GetsTheStackOfARankThatHoldsItsInterpreterWithinTheSameLook) {
  asio::io_context loop;
  const std::unique_ptr<Tap> tap = Tap::Make("").value();
  const std::string tool = absl::StrCat(tap->directory(), "/py-spy");
  std::ofstream(tool) << "#!/bin/sh\necho 'Thread 1 (idle): \"MainThread\"'\n"
                         "echo '    work (train.py:3)'\n";
  ASSERT_EQ(::chmod(tool.c_str(), 0700), 0);
  const HeldRank rank(tap->directory());
  LookPlan plan;
  plan.tap = tap->directory();
  plan.workers = 1;
  plan.tools = tap->directory();
  plan.patience = milliseconds(250);  // Shorter than the wait for an answer.
  plan.answer_limit = milliseconds(300);
  plan.dump_limit = std::chrono::seconds(100);
  NodeLook look(loop, plan);
  look.Started(0, ::getpid());
  // The first look does not know the rank yet. On a busy machine a flight record may come too late
  // for its look, which then has nothing to go by.
  int looks = 0;
  do {
    LookOnce(loop, look);
  } while (++looks < 100 && !(look.still() && look.snapshots()[0].answers));
  EXPECT_GT(looks, 1);
  EXPECT_TRUE(look.snapshots()[0].holds_interpreter);
  EXPECT_EQ(look.snapshots()[0].place, "work (train.py:3)");
}

// The server of a rank with a long record of NCCL's.
class LongRecord {
 public:
  LongRecord(const std::string& tap, bool knows_brief, bool over = true)
      : knows_brief_(knows_brief),
        over_(over),
        server_(tap, [this](absl::string_view asked) { return Answer(asked); }) {}

  std::atomic<int> number = 3;  // Of the last call.
  std::atomic<int> whole = 0;   // How often the whole record was asked for.
  std::atomic<int> brief = 0;

 private:
  std::string Answer(absl::string_view asked) {
    if (absl::StartsWith(asked, "GET /handler/ ")) return R"(["dump_nccl_trace_json"])";
    if (asked.find("wait_counter_values") != asked.npos) return "{}";
    if (asked.find("dump_nccl_trace_json") == asked.npos) return "";
    const bool briefly = asked.find("?includecollectives=false") != asked.npos;
    ++(briefly ? brief : whole);
    if (briefly && !knows_brief_) return "";
    const std::string status =
        absl::StrCat(R"("pg_config":{},"pg_status":{"0":{"last_enqueued_collective":)",
                     number.load(), R"(}},"version":"2.10"})");
    if (briefly) return absl::StrCat("{", status);
    std::string entries;
    for (int i = 0; i < 300; ++i) {
      absl::StrAppend(&entries, i == 0 ? "" : ",", R"({"record_id":)", i,
                      R"(,"collective_seq_id":3,"process_group":["0","default_pg"],)"
                      R"("profiling_name":"nccl:all_reduce","retired":)",
                      over_ ? "true" : "false", R"(,"state":"scheduled"})");
    }
    return absl::StrCat(R"({"entries":[)", entries, "],", status);
  }

  const bool knows_brief_;
  const bool over_;
  FakeServer server_;
};

LookPlan OneWorker(const Tap& tap) {
  LookPlan plan;
  plan.tap = tap.directory();
  plan.workers = 1;
  plan.patience = std::chrono::hours(1);
  plan.answer_limit = std::chrono::seconds(60);
  return plan;
}

TEST(NodeLook, AsksARankThatGoesOnOnlyHowFarItIs) {
  asio::io_context loop;
  const std::unique_ptr<Tap> tap = Tap::Make("").value();
  LongRecord rank(tap->directory(), /*knows_brief=*/true);
  NodeLook look(loop, OneWorker(*tap));
  look.Started(0, ::getpid());
  for (int i = 0; i < 5; ++i, ++rank.number) {
    LookOnce(loop, look);
    EXPECT_FALSE(look.still());
  }
  EXPECT_EQ(rank.whole, 1);
  EXPECT_EQ(rank.brief, 4);
  --rank.number;
  LookOnce(loop, look);
  EXPECT_TRUE(look.still());
  EXPECT_EQ(rank.whole, 2);
  ASSERT_EQ(look.snapshots()[0].groups.size(), 1u);
  EXPECT_EQ(look.snapshots()[0].groups[0].latest.back().sequence, 3);
  // Nothing has been called since, and all calls were over.
  LookOnce(loop, look);
  EXPECT_TRUE(look.still());
  EXPECT_EQ(rank.whole, 2);
  ++rank.number;
  LookOnce(loop, look);
  EXPECT_FALSE(look.still());
  EXPECT_EQ(rank.whole, 2);
  LookOnce(loop, look);
  EXPECT_TRUE(look.still());
  EXPECT_EQ(rank.whole, 3);
}

TEST(NodeLook, AsksForARecordAgainWhileACallIsNotOver) {
  asio::io_context loop;
  const std::unique_ptr<Tap> tap = Tap::Make("").value();
  LongRecord rank(tap->directory(), /*knows_brief=*/true, /*over=*/false);
  NodeLook look(loop, OneWorker(*tap));
  look.Started(0, ::getpid());
  for (int i = 0; i < 4; ++i) LookOnce(loop, look);
  EXPECT_TRUE(look.still());
  EXPECT_EQ(rank.whole, 4);  // Once for the first glance.
}

TEST(NodeLook, AsksForTheWholeRecordWhereTheServerKnowsNoOtherQuestion) {
  asio::io_context loop;
  const std::unique_ptr<Tap> tap = Tap::Make("").value();
  LongRecord rank(tap->directory(), /*knows_brief=*/false);
  NodeLook look(loop, OneWorker(*tap));
  look.Started(0, ::getpid());
  for (int i = 0; i < 5; ++i, ++rank.number) {
    LookOnce(loop, look);
    EXPECT_FALSE(look.still());
  }
  EXPECT_EQ(rank.whole, 5);
  EXPECT_EQ(rank.brief, 1);
  --rank.number;
  LookOnce(loop, look);
  EXPECT_TRUE(look.still());
}

TEST(NodeLook, LooksCloselyAtARankThatGoesOnForAPerson) {
  asio::io_context loop;
  const std::unique_ptr<Tap> tap = Tap::Make("").value();
  LongRecord rank(tap->directory(), /*knows_brief=*/true);
  LookPlan plan = OneWorker(*tap);
  plan.closely = true;
  NodeLook look(loop, plan);
  look.Started(0, ::getpid());
  LookOnce(loop, look);
  ++rank.number;
  LookOnce(loop, look);
  EXPECT_FALSE(look.still());
  EXPECT_EQ(rank.whole, 2);
  EXPECT_EQ(look.snapshots()[0].groups.size(), 1u);
  LookOnce(loop, look);
  EXPECT_TRUE(look.still());
}

TEST(NodeLook, AsksOnlyOnceForARecordThatIsTooLong) {
  asio::io_context loop;
  const std::unique_ptr<Tap> tap = Tap::Make("").value();
  const HeldRank rank(tap->directory(), std::string(9 << 20, 'x'));
  LookPlan plan;
  plan.tap = tap->directory();
  plan.workers = 1;
  plan.patience = std::chrono::seconds(100);
  NodeLook look(loop, plan);
  look.Started(0, ::getpid());
  for (int i = 0; i < 100 && !look.snapshots()[0].hidden; ++i) LookOnce(loop, look);
  EXPECT_TRUE(look.snapshots()[0].hidden);
  const int before = rank.records();
  LookOnce(loop, look);
  EXPECT_TRUE(look.snapshots()[0].hidden);
  EXPECT_TRUE(look.snapshots()[0].answers);
  EXPECT_EQ(rank.records(), before);
}

}  // namespace
}  // namespace hlaunch
