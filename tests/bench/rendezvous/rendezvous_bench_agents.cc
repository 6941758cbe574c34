// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/completion_queue.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/clock.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/grpc_transport.h"

// The conversations of many agents with one rendezvous, each on its own connection, without real
// agents: they join, say that they run the round, and send signs of life.
//
//     rendezvous_bench_agents PORT AGENTS THREADS
//
// With a token in HLAUNCH_TOKEN they use TLS, or with HLAUNCH_TLS=off a greeting in clear text.
//
// At most 1,024 connect at once: their handshakes share this host's processors, while real agents
// have hosts of their own.
//
// Prints one line of JSON once all agents run the round, and ends with its standard input.

namespace hlaunch {
namespace {

constexpr size_t kConnectAtOnce = 1024;

double CpuMillis() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto millis = [](const timeval& t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; };
  return millis(usage.ru_utime) + millis(usage.ru_stime);
}

// One agent's stream. A tag of the queue is the address of the Turn that completes.
struct Agent {
  struct Turn {
    Agent* agent;
    enum class Kind { kStarted, kRead, kWritten } kind;
  };

  Agent(uint16_t port, const Trust& trust, grpc::CompletionQueue* queue)
      : stub(v1::Rendezvous::NewStub(Line("127.0.0.1", port, trust).channel())),
        rpc(stub->PrepareAsyncAttach(&context, queue)) {}

  std::unique_ptr<v1::Rendezvous::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::AttachRequest, v1::AttachResponse>> rpc;
  v1::AttachRequest request;
  v1::AttachResponse response;
  NodeUpdate update;
  bool owes = false;          // It has to send `update`.
  bool says_running = false;  // The current write says kRunning.
  bool writing = false;
  Instant beat;  // When it sends its next sign of life.
  Turn started{this, Turn::Kind::kStarted};
  Turn read{this, Turn::Kind::kRead};
  Turn written{this, Turn::Kind::kWritten};
};

// The data that the threads share.
struct Crowd {
  uint16_t port = 0;
  Trust trust;
  int agents = 0;
  int threads = 1;
  Instant began;
  std::atomic<int> joined{0};
  std::atomic<int> told{0};     // Agents told to run.
  std::atomic<int> running{0};  // Agents that said that they run.
  std::atomic<bool> over{false};
};

NodeInfo InfoOf(int index, int agents) {
  NodeInfo info;
  info.job_id = "bench";
  info.node_id = absl::StrCat("bench-", index);
  info.incarnation = index + 1;
  info.host = absl::StrCat("node", index);
  info.pid = 1000;
  info.policy.min_nodes = info.policy.max_nodes = agents;
  info.nproc = 8;
  info.address = absl::StrCat("10.", index >> 16, ".", (index >> 8) & 255, ".", index & 255);
  return info;
}

// The agents of one thread.
class Share {
 public:
  Share(Crowd& crowd, int first) : crowd_(crowd) {
    for (int index = first; index < crowd.agents; index += crowd.threads) {
      agents_.push_back(std::make_unique<Agent>(crowd.port, crowd.trust, &queue_));
      Agent& agent = *agents_.back();
      *agent.request.mutable_join() = ToProto(InfoOf(index, crowd.agents));
      agent.update.store_port = 4000;
      *agent.request.mutable_update() = ToProto(agent.update);
    }
    const size_t at_once = kConnectAtOnce / static_cast<size_t>(crowd.threads);
    while (connecting_ < std::min(at_once, agents_.size())) Connect();
  }

  void Run() {
    while (!crowd_.over) {
      void* tag = nullptr;
      bool ok = false;
      const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(50);
      if (queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
        React(*static_cast<Agent::Turn*>(tag), ok);
      }
      Beat();
    }
  }

 private:
  void Connect() {
    Agent& agent = *agents_[connecting_++];
    agent.rpc->StartCall(&agent.started);
  }

  void React(const Agent::Turn& turn, bool ok) {
    Agent& agent = *turn.agent;
    if (!ok) Fail();
    switch (turn.kind) {
      case Agent::Turn::Kind::kStarted:
        Write(agent);
        break;
      case Agent::Turn::Kind::kRead:
        Hear(agent);
        break;
      case Agent::Turn::Kind::kWritten:
        agent.writing = false;
        if (std::exchange(agent.says_running, false)) ++crowd_.running;
        Speak(agent);
        return;
    }
    agent.rpc->Read(&agent.response, &agent.read);
  }

  void Hear(Agent& agent) {
    if (agent.response.has_policy()) {
      ++crowd_.joined;
      if (connecting_ < agents_.size()) Connect();
      gap_ = FromProto(agent.response.policy()).value().lease.lease * 7 / 16;
      Await(agent);
    }
    const v1::Directive& directive = agent.response.directive();
    if (directive.has_prepare()) Obey(agent, NodePhase::kPrepared, directive.prepare().round());
    if (directive.has_run()) Obey(agent, NodePhase::kRunning, directive.run().round());
  }

  // Enters the phase that it is told and says so as soon as it can.
  void Obey(Agent& agent, NodePhase phase, Round round) {
    if (agent.update.phase == NodePhase::kRunning || agent.update.phase == phase) return;
    if (phase == NodePhase::kRunning) ++crowd_.told;
    agent.update.round = round;
    agent.update.phase = phase;
    agent.owes = true;
    Speak(agent);
  }

  void Speak(Agent& agent) {
    if (agent.writing || !std::exchange(agent.owes, false)) return;
    agent.request.Clear();
    *agent.request.mutable_update() = ToProto(agent.update);
    agent.says_running = agent.update.phase == NodePhase::kRunning;
    Write(agent);
  }

  void Write(Agent& agent) {
    agent.writing = true;
    agent.rpc->Write(agent.request, &agent.written);
  }

  void Await(Agent& agent) {
    agent.beat = MonotonicClock().Now() + gap_;
    beats_.push_back(&agent);
  }

  // All agents wait equally long, so the first of the list is due first.
  void Beat() {
    const Instant now = MonotonicClock().Now();
    while (!beats_.empty() && beats_.front()->beat <= now) {
      Agent& agent = *beats_.front();
      beats_.pop_front();
      if (!agent.writing) {
        agent.request.Clear();
        Write(agent);
      }
      Await(agent);
    }
  }

  [[noreturn]] static void Fail() {
    std::cerr << "a stream broke\n";
    std::_Exit(1);
  }

  Crowd& crowd_;
  Duration gap_ = Lease().lease / 2;  // Time between signs of life.
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Agent>> agents_;
  size_t connecting_ = 0;  // Agents that have begun to connect.
  std::deque<Agent*> beats_;
};

double SecondsSince(Instant began) {
  return std::chrono::duration<double>(MonotonicClock().Now() - began).count();
}

// Polls once a millisecond, which costs less than a notification.
double AwaitCount(const std::atomic<int>& count, int wanted, Instant began) {
  while (count < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return SecondsSince(began);
}

int Main(Crowd& crowd) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  crowd.began = MonotonicClock().Now();
  std::vector<std::thread> threads;
  for (int i = 0; i < crowd.threads; ++i) {
    threads.emplace_back([&crowd, i] { Share(crowd, i).Run(); });
  }
  const double joined = AwaitCount(crowd.joined, crowd.agents, crowd.began);
  const double told = AwaitCount(crowd.told, crowd.agents, crowd.began);
  const double running = AwaitCount(crowd.running, crowd.agents, crowd.began);
  std::cout << absl::StrCat("{\"joined_s\": ", joined, ", \"assigned_s\": ", told,
                            ", \"running_s\": ", running, ", \"cpu_ms\": ", CpuMillis(), "}")
            << std::endl;
  std::cin.get();
  std::_Exit(0);  // Like a crowd that is killed: its streams break.
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  hlaunch::Crowd crowd;
  int port = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[1], &port) || !absl::SimpleAtoi(argv[2], &crowd.agents) ||
      !absl::SimpleAtoi(argv[3], &crowd.threads)) {
    std::cerr << "usage: rendezvous_bench_agents PORT AGENTS THREADS\n";
    return 2;
  }
  crowd.port = static_cast<uint16_t>(port);
  const char* token = std::getenv("HLAUNCH_TOKEN");
  const char* tls = std::getenv("HLAUNCH_TLS");
  const bool in_clear = tls != nullptr && std::string(tls) == "off";
  crowd.trust = hlaunch::Trust::Of(token == nullptr ? "" : token, {}, !in_clear).value();
  return hlaunch::Main(crowd);
}
