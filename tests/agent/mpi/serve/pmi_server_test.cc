// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/mpi/pmi/pmi_ids.h"
#include "asio/io_context.hpp"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kSomebody = 54321;
constexpr char kSpawn[] =
    "mcmd=spawn\nnprocs=1\nexecname=/bin/x\ntotspawns=1\nspawnssofar=1\nendcmd\n";

// What a client says, once it has heard a certain text: first "", at once.
struct Turn {
  std::string heard;
  std::string says;
};

// Connects to `port`, says what `turns` tell and writes all that it hears to `out`. Runs in a
// child.
int Talk(uint16_t port, const std::vector<Turn>& turns, int out) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return 0;
  std::string heard;
  for (const Turn& turn : turns) {
    while (heard.find(turn.heard) == std::string::npos) {
      char bytes[1024];
      const ssize_t size = ::recv(fd.get(), bytes, sizeof(bytes), 0);
      if (size <= 0) return 0;
      heard.append(bytes, static_cast<size_t>(size));
      if (::write(out, bytes, static_cast<size_t>(size)) != size) return 1;
    }
    ::send(fd.get(), turn.says.data(), turn.says.size(), MSG_NOSIGNAL);
  }
  return 0;
}

// A server of two ranks by a port.
class PmiServerByPort : public testing::Test {
 protected:
  PmiServerByPort() {
    PmiServer::Events events;
    events.on_failure = [](const MpiFailure&) {};
    events.spawn = [this](int local_rank, const SpawnRequest&) {
      spawned_by_.push_back(local_rank);
      return absl::OkStatus();
    };
    server_ = *PmiServer::Open(loop_, {"hl-1-r1", 0, 2, 2, 0, 1, true}, /*by_port=*/true, "", 0,
                               std::move(events));
  }

  // Serves a client of `user` that says what `turns` tell. Returns what it heard.
  std::string Serve(uint16_t port, const std::vector<Turn>& turns, uid_t user = ::geteuid()) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
    const UniqueFd in(ends[0]);
    UniqueFd out(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_user = user == ::geteuid() || ::setresuid(user, user, user) == 0;
      ::_exit(is_user ? Talk(port, turns, out.get()) : 2);
    }
    out.Close();
    std::string heard;
    char bytes[1024];
    pollfd answer = {in.get(), POLLIN, 0};
    while (true) {
      loop_.restart();
      loop_.poll();
      if (::poll(&answer, 1, 10) != 1) continue;
      const ssize_t size = ::read(in.get(), bytes, sizeof(bytes));
      if (size <= 0) break;
      heard.append(bytes, static_cast<size_t>(size));
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return heard;
  }

  static std::vector<Turn> Spawning(int id) {
    return {{"", absl::StrCat("cmd=initack pmiid=", id, "\n")},
            {"set debug=0\n", absl::StrCat("cmd=init pmi_version=1 pmi_subversion=1\n", kSpawn)},
            {"spawn_result", ""}};
  }

  static std::vector<Turn> Coming(int id) {
    return {{"", absl::StrCat("cmd=initack pmiid=", id, "\n")}, {"set debug=0\n", ""}};
  }

  asio::io_context loop_;
  std::vector<int> spawned_by_;
  std::unique_ptr<PmiServer> server_;
};

TEST_F(PmiServerByPort, ServesAWorkerAndWhatItSpawns) {
  ASSERT_TRUE(server_->Link(0).ok());
  const PmiLink link = *server_->Link(1);
  EXPECT_THAT(Serve(link.port, Spawning(link.id)),
              AllOf(HasSubstr("cmd=set rank=1\n"), HasSubstr("spawn_result rc=0")));
  EXPECT_THAT(spawned_by_, testing::ElementsAre(1));
}

TEST_F(PmiServerByPort, DoesNotHearAnotherUserThoughHeHasTheNumber) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const PmiLink link = *server_->Link(0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Serve(link.port, Spawning(link.id), kSomebody), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("refused at the port of MPI's start, which is for this job's user: a "
                        "connection of the user 54321; --any-user serves all users\n"));
  EXPECT_THAT(spawned_by_, testing::IsEmpty());
  EXPECT_THAT(Serve(link.port, Spawning(link.id)), HasSubstr("spawn_result rc=0"));
}

TEST_F(PmiServerByPort, IsNotClosedByAnotherUsersWrongNumbers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const PmiLink link = *server_->Link(0);
  for (int i = 0; i < 2 * kMostWrongPmiIds; ++i) Serve(link.port, Coming(-1), kSomebody);
  EXPECT_THAT(Serve(link.port, Coming(link.id)), HasSubstr("cmd=set rank=0\n"));
}

TEST_F(PmiServerByPort, ClosesAfterTooManyWrongNumbers) {
  const PmiLink first = *server_->Link(0), second = *server_->Link(1);
  EXPECT_THAT(Serve(first.port, Coming(first.id)), HasSubstr("cmd=set rank=0\n"));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2 * kMostWrongPmiIds; ++i) EXPECT_EQ(Serve(first.port, Coming(-1)), "");
  EXPECT_EQ(Serve(second.port, Coming(second.id)), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("the port of MPI's start is closed until the next round: 8 "));
  EXPECT_EQ(said.find("is closed"), said.rfind("is closed")) << said;
}

TEST_F(PmiServerByPort, SaysOfASecondProgramThatAWorkerRunsOne) {
  const PmiLink link = *server_->Link(0);
  Serve(link.port, Coming(link.id));
  testing::internal::CaptureStderr();
  EXPECT_EQ(Serve(link.port, Coming(link.id)), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a worker came to the port of MPI's start a second time"));
}

}  // namespace
}  // namespace hlaunch
