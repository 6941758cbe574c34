// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/comm/ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "comm/process_transport/process_transport.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/store/c10d/c10d_client.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "tests/fakes/loopback_transport.h"

namespace hlaunch {

namespace {

std::vector<std::string> RunThreads(int size, int per_host, const RankBody& body) {
  auto group = LoopbackTransport::MakeGroup(size, per_host);
  std::vector<std::string> results(size);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank, transport = std::move(group[rank])]() mutable {
      LoopbackTransport& mine = *transport;
      TestRank self{mine, [&] { mine.Vanish(); },
                    [&](GroupOptions options) {
                      return ProcessGroup::Over(std::move(transport), std::move(options));
                    }};
      results[rank] = body(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

struct Pipe {
  UniqueFd read_end, write_end;
};
Pipe MakePipe() {
  int fds[2];
  HLAUNCH_CHECK(::pipe(fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// How bytes pass between the ranks of a host.
struct Way {
  bool shared_memory;
  SingleCopy single_copy;
};

std::string RunRank(Rank rank, int size, uint16_t port, const Way& way, const RankBody& body) {
  const Instant deadline = MonotonicClock().Now() + std::chrono::seconds(100);
  auto store = C10dClient::Connect("127.0.0.1", port, deadline);
  if (!store.ok()) return store.status().ToString();
  auto transport = ProcessTransport::Create(
      **store, rank, size,
      {.address = "127.0.0.1", .shared_memory = way.shared_memory, .single_copy = way.single_copy});
  if (!transport.ok()) return transport.status().ToString();
  const std::shared_ptr<Store> shared = *std::move(store);
  TestRank self{**transport, [] { ::raise(SIGKILL); },
                [&](GroupOptions group_options) {
                  group_options.name = "group";
                  group_options.shared_memory = way.shared_memory;
                  group_options.single_copy = way.single_copy;
                  return *ProcessGroup::Create(shared, rank, size, std::move(group_options));
                }};
  return body(self);
}

std::vector<std::string> Fork(int size, const Way& way, const RankBody& body) {
  Pipe go = MakePipe();
  std::vector<Pipe> results(size);
  std::vector<pid_t> pids;
  for (Rank rank = 0; rank < size; ++rank) {
    results[rank] = MakePipe();
    pids.push_back(::fork());
    if (pids.back() != 0) {
      results[rank].write_end.Close();
      continue;
    }
    ::alarm(100);
    uint16_t port = 0;
    HLAUNCH_CHECK(::read(go.read_end.get(), &port, sizeof port) == sizeof port);
    const std::string result = RunRank(rank, size, port, way, body);
    const bool told = ::write(results[rank].write_end.get(), result.data(), result.size()) >= 0;
    std::_Exit(told ? 0 : 1);
  }
  // Threads begin only now, so that no child is forked while a thread holds a lock.
  auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  for (int i = 0; i < size; ++i) {
    const uint16_t port = server->port();
    HLAUNCH_CHECK(::write(go.write_end.get(), &port, sizeof port) == sizeof port);
  }
  std::vector<std::string> texts(size);
  for (Rank rank = 0; rank < size; ++rank) {
    char buffer[4096];
    ssize_t got;
    while ((got = ::read(results[rank].read_end.get(), buffer, sizeof buffer)) > 0) {
      texts[rank].append(buffer, got);
    }
    int status;
    ::waitpid(pids[rank], &status, 0);
    const bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!died && status != 0) texts[rank] = absl::StrCat("ended with status ", status);
  }
  return texts;
}

}  // namespace

std::vector<std::string> RunAsThreads(int size, const RankBody& body) {
  return RunThreads(size, 0, body);
}

std::vector<std::string> RunAsHosts(int size, const RankBody& body) {
  return RunThreads(size, 2, body);
}

std::vector<std::string> RunAsProcesses(int size, const RankBody& body) {
  return Fork(size, {true, SingleCopy::kNever}, body);
}

std::vector<std::string> RunWithSingleCopy(int size, const RankBody& body) {
  return Fork(size, {true, SingleCopy::kAlways}, body);
}

std::vector<std::string> RunWithTcp(int size, const RankBody& body) {
  return Fork(size, {false, SingleCopy::kNever}, body);
}

}  // namespace hlaunch
