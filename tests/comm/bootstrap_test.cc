// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rendezvous/store/c10d/c10d_client.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "tests/fakes/free_port.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const Environment kWorker = {{"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"},
                             {"RANK", "0"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_WORLD_SIZE", "2"}};

Environment With(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}

std::string Refused(absl::string_view url, const Environment& environment, Rank rank = -1,
                    int size = -1) {
  const auto init = ParseInitMethod(url, rank, size, environment);
  if (init.ok()) return "accepted";
  EXPECT_TRUE(absl::IsInvalidArgument(init.status())) << init.status();
  return std::string(init.status().message());
}

TEST(ParseInitMethod, ReadsTheEnvironmentOfAWorker) {
  const InitMethod init = *ParseInitMethod("env://", -1, -1, kWorker);
  EXPECT_EQ(init.host, "node0");
  EXPECT_EQ(init.port, 29500);
  EXPECT_EQ(init.rank, 0);
  EXPECT_EQ(init.size, 4);
  EXPECT_EQ(init.local_ranks, 2);
  EXPECT_TRUE(init.rank_0_opens);
}

TEST(ParseInitMethod, NobodyOpensTheStoreOfAnAgent) {
  const auto opens = [](const char* said) {
    return ParseInitMethod("env://", -1, -1, With(kWorker, "TORCHELASTIC_USE_AGENT_STORE", said))
        ->rank_0_opens;
  };
  EXPECT_FALSE(opens("True"));
  EXPECT_TRUE(opens("False"));
  EXPECT_TRUE(opens("true"));  // Torch knows only "True".
  EXPECT_FALSE(ParseInitMethod("tcp://a:1?store=open", 0, 1, {})->rank_0_opens);
  // A given port is not the agent's.
  EXPECT_TRUE(
      ParseInitMethod("tcp://a:1", 0, 1, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})->rank_0_opens);
}

TEST(ParseInitMethod, WhatIsGivenBeatsTheUrlAndThatTheEnvironment) {
  const auto init = ParseInitMethod("tcp://[::1]:80/?rank=2&world_size=3", -1, 8, kWorker);
  EXPECT_EQ(init->host, "::1");
  EXPECT_EQ(init->port, 80);
  EXPECT_EQ(init->rank, 2);
  EXPECT_EQ(init->size, 8);
  EXPECT_EQ(ParseInitMethod("file:///tmp/x?rank=3", -1, -1, kWorker)->path, "/tmp/x");
}

TEST(ParseInitMethod, WhatIsMissingIsNamedWithTheWayOut) {
  Environment without = kWorker;
  without.erase("MASTER_PORT");
  EXPECT_THAT(Refused("env://", without),
              AllOf(HasSubstr("MASTER_PORT is not set"), HasSubstr("tcp://HOST:PORT")));
  EXPECT_THAT(Refused("env://", With(kWorker, "MASTER_ADDR", "")), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(Refused("tcp://a:1", {}), AllOf(HasSubstr("RANK is not set"), HasSubstr("hlaunch")));
  EXPECT_THAT(Refused("tcp://a:1?rank=0", {}), HasSubstr("WORLD_SIZE"));
}

TEST(ParseInitMethod, NonsenseIsNamed) {
  EXPECT_THAT(Refused("env://", With(kWorker, "MASTER_PORT", "x1")),
              HasSubstr("MASTER_PORT is 'x1'"));
  EXPECT_THAT(Refused("env://", With(kWorker, "RANK", "4")), HasSubstr("rank 4 in a world of 4"));
  EXPECT_THAT(Refused("env://", With(kWorker, "WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE is '0'"));
  EXPECT_THAT(Refused("env://", kWorker, -2), HasSubstr("rank is '-2'"));
  EXPECT_THAT(Refused("env://?ranks=1", kWorker), HasSubstr("'ranks=1'"));
  EXPECT_THAT(Refused("etcd://a", kWorker),
              HasSubstr("env://, tcp://HOST:PORT, file:///PATH or pmi://"));
  EXPECT_THAT(Refused("", kWorker), HasSubstr("env://"));
  EXPECT_THAT(Refused("tcp://host", kWorker), HasSubstr("tcp://HOST:PORT"));
  EXPECT_THAT(Refused("tcp://:12", kWorker), HasSubstr("tcp://HOST:PORT"));
  EXPECT_THAT(Refused("tcp://[::1:12", kWorker), HasSubstr("tcp://HOST:PORT"));
  EXPECT_THAT(Refused("tcp://::1:12", kWorker), HasSubstr("brackets"));
  EXPECT_THAT(Refused("tcp://a:70000", kWorker), HasSubstr("70000"));
  EXPECT_THAT(Refused("file://x", kWorker), HasSubstr("whole path"));
}

// Runs all ranks as threads, each with one barrier. Returns their statuses by rank.
std::vector<std::string> Meet(const std::string& url, int size, Environment environment = {}) {
  environment["LOCAL_WORLD_SIZE"] = std::to_string(size);
  std::vector<std::string> results(size);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = InitProcessGroup(url, rank, size, {.timeout = 30s}, environment);
      results[rank] = group.ok() ? (*group)->Run(Barrier()).ToString() : group.status().ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(ParseInitMethod, TakesTheSecretOfTheRoundAndSaysWhatIsWrongWithAnother) {
  const std::string digits(64, 'a');
  const auto init =
      ParseInitMethod("tcp://h:1", 0, 1, {{"HLAUNCH_COMM_SECRET", digits}, {"HLAUNCH_ROUND", "3"}});
  ASSERT_TRUE(init.ok()) << init.status();
  EXPECT_EQ(init->secret, std::string(32, '\xaa'));
  EXPECT_EQ(init->round, 3);
  const absl::Status wrong =
      ParseInitMethod("tcp://h:1", 0, 1, {{"HLAUNCH_COMM_SECRET", "hunter2"}}).status();
  EXPECT_THAT(std::string(wrong.message()), testing::HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(std::string(wrong.message()), testing::Not(testing::HasSubstr("hunter2")));
}

TEST(InitProcessGroup, RanksMeetAtAStoreThatRank0Opens) {
  EXPECT_THAT(Meet(absl::StrCat("tcp://127.0.0.1:", FreePort()), 3), Each("OK"));
  EXPECT_THAT(Meet("env://", 2,
                   {{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", std::to_string(FreePort())}}),
              Each("OK"));
}

// A late rank still finds the addresses of the others, though rank 0 is done.
TEST(InitProcessGroup, Rank0sStoreStaysUntilAllHaveLeft) {
  const std::string url = absl::StrCat("tcp://127.0.0.1:", FreePort());
  std::thread rank0([&] { EXPECT_TRUE(InitProcessGroup(url, 0, 2, {.timeout = 30s}, {}).ok()); });
  {
    const auto late = InitProcessGroup(url, 1, 2, {.timeout = 30s}, {});
    ASSERT_TRUE(late.ok()) << late.status();
    const auto look = C10dClient::Connect("127.0.0.1", ParseInitMethod(url, 1, 2, {})->port,
                                          MonotonicClock().Now() + 300s);
    ASSERT_TRUE(look.ok()) << look.status();
    // Rank 0 has left its group by now.
    EXPECT_TRUE((*look)->Wait({"hlaunch/comm/left"}, MonotonicClock().Now() + 300s).ok());
    EXPECT_TRUE((*look)->Get("hlaunch/comm/default/0", MonotonicClock().Now() + 300s).ok());
  }
  rank0.join();
}

TEST(InitProcessGroup, RanksMeetAtTheAgentsStoreBesideTorchsKeys) {
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  const auto torch =
      *C10dClient::Connect("127.0.0.1", server->port(), MonotonicClock().Now() + 300s);
  for (const char* key : {"init/", "default_pg/0//cpu//0/0", "0", "failure"}) {
    ASSERT_TRUE(torch->Set(key, "torch's").ok());
  }
  EXPECT_THAT(Meet("env://", 2,
                   {{"MASTER_ADDR", "127.0.0.1"},
                    {"MASTER_PORT", std::to_string(server->port())},
                    {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
              Each("OK"));
  for (const char* key : {"init/", "default_pg/0//cpu//0/0", "0", "failure"}) {
    EXPECT_EQ(*torch->Get(key, MonotonicClock().Now() + 300s), "torch's");
  }
}

TEST(InitProcessGroup, RanksMeetAtAFileThatGoesWithTheLast) {
  const std::string path = testing::TempDir() + "/bootstrap_test_" + std::to_string(::getpid());
  EXPECT_THAT(Meet("file://" + path, 3), Each("OK"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(InitProcessGroup, AFileOfAFormerRunIsRefused) {
  const std::string path = testing::TempDir() + "/bootstrap_old_" + std::to_string(::getpid());
  {
    const auto alone = InitProcessGroup("file://" + path, 1, 2, {}, {});
    ASSERT_TRUE(alone.ok()) << alone.status();
  }
  const auto again = InitProcessGroup("file://" + path, 1, 2, {}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(again.status())) << again.status();
  EXPECT_THAT(std::string(again.status().message()),
              AllOf(HasSubstr(path), HasSubstr("remove the file")));
  std::filesystem::remove(path);
}

TEST(InitProcessGroup, AWishedInterfaceThatIsNotThereIsNamed) {
  EXPECT_THAT(
      Meet(absl::StrCat("tcp://127.0.0.1:", FreePort()), 1, {{"HLAUNCH_SOCKET_IFNAME", "none0"}}),
      Each(AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("HLAUNCH_SOCKET_IFNAME=none0"))));
}

TEST(InitProcessGroup, SaysWhereItLookedForTheStore) {
  const std::string where = absl::StrCat("127.0.0.1:", FreePort());
  const auto nobody = InitProcessGroup("tcp://" + where, 1, 2, {.timeout = 50ms}, {});
  EXPECT_TRUE(absl::IsUnavailable(nobody.status())) << nobody.status();
  EXPECT_THAT(std::string(nobody.status().message()), HasSubstr(where));
}

std::string ByPmi(const Environment& environment, Duration timeout) {
  const auto group = InitProcessGroup("pmi://", -1, -1, {.timeout = timeout}, environment);
  return group.ok() ? "accepted" : group.status().ToString();
}

TEST(InitProcessGroup, WhoLooksForPmiInVainIsToldWhatToDo) {
  EXPECT_THAT(ByPmi({}, 30s), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("PMI_FD"),
                                    HasSubstr("hlaunch --mpi pmi")));
  EXPECT_THAT(ByPmi({{"PMI_FD", "9999"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, 30s),
              HasSubstr("no descriptor"));
}

TEST(InitProcessGroup, AServerOfPmiThatEndsOrIsSilentIsNoHang) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const Environment environment = {
      {"PMI_FD", absl::StrCat(ours.get())}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  EXPECT_THAT(ByPmi(environment, 50ms), HasSubstr("DEADLINE_EXCEEDED"));
  theirs.Close();
  EXPECT_THAT(ByPmi(environment, 30s), HasSubstr("UNAVAILABLE"));
}

TEST(InitProcessGroup, APortThatIsTakenIsNamedWithTheWayOut) {
  const auto other = *Listen("127.0.0.1", 0);
  const auto taken =
      InitProcessGroup(absl::StrCat("tcp://127.0.0.1:", other.port), 0, 1, {.timeout = 30s}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(taken.status())) << taken.status();
  EXPECT_THAT(std::string(taken.status().message()),
              AllOf(HasSubstr(absl::StrCat(other.port)), HasSubstr("?store=open")));
}

}  // namespace
}  // namespace hlaunch
