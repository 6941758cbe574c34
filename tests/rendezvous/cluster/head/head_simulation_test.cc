// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <malloc.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/rendezvous/cluster/head/head_world.h"
#include "tests/rendezvous/cluster/head/simulated_hosts.h"

namespace hlaunch {
namespace {

// A sanitizer takes ten times as long and checks memory use.
#ifdef HLAUNCH_SANITIZED
constexpr int kJobs = 300, kWorlds = 3;
#else
constexpr int kJobs = 2000, kWorlds = 10;
#endif

struct Plan {
  int hosts = 200;
  int jobs = kJobs;
  int jobs_a_second = 5;
  // One in this many host seconds; head_ends: one in this many seconds.
  int host_leaves = 4000, host_boots = 20000, host_drained = 2000, head_ends = 60;
  // One in this many turns is cut before all is written; as many before all is sent.
  int turn_is_cut = 20000;
};

// CPU time of this thread only: other threads may use the CPU.
double WorkedMicros() {
  timespec worked = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked);
  return static_cast<double>(worked.tv_sec) * 1e6 + static_cast<double>(worked.tv_nsec) / 1e3;
}

// A cluster and its users, second by second. The head may end at any moment: before it has written
// what it decided, or before its orders have left.
class Simulation {
 public:
  Simulation(const Plan& plan, uint32_t seed) : plan_(plan), random_(seed) {
    for (int i = 1; i <= plan.hosts; ++i) {
      hosts_.push_back(std::make_unique<SimulatedHost>("node" + std::to_string(i), 8, random_));
    }
  }

  void Run() {
    while (!Over() && now_ < 100000 && !testing::Test::HasFailure()) Second();
    ASSERT_LT(now_, 100000) << Waiting();
    for (int i = 0; i < 200; ++i) Quiet();
    CheckNothingIsLeft();
  }

  void Print() const {
    const double starts = std::max<double>(1, starts_);
    std::printf(
        "%d hosts, %zu jobs, %lld s, the head began %d times: %lld starts of parts; for each, "
        "with all else that happened, %.0f us to decide and %.0f us to make what is kept; "
        "the longest turn %.1f ms, of which to decide at most %.1f ms; %.1f MB at most\n",
        plan_.hosts, numbers_.size(), static_cast<long long>(now_), lives_,
        static_cast<long long>(starts_), decided_us_ / starts, written_us_ / starts,
        longest_turn_us_ / 1e3, longest_decided_us_ / 1e3, most_memory_ / 1e6);
  }

 private:
  bool OneOf(int count) { return std::uniform_int_distribution<int>(1, count)(random_) == 1; }
  int64_t Random(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random_);
  }

  void Second() {
    SubmitSome();
    StopSome();
    DisturbHosts();
    DrainSome();
    Quiet();
    if (OneOf(plan_.head_ends)) EndHead();
  }

  // Simulates a second without faults.
  void Quiet() {
    ++now_;
    ConnectHosts();
    PassOnHosts();
    Deliver();
    Do([this] { world_.Pass(std::chrono::seconds(1)); });
    Turn();
    Check();
  }

  // Gives the head one input. Several may come in one turn of its loop.
  template <typename Input>
  void Do(const Input& input) {
    const double before = WorkedMicros();
    input();
    turn_us_ += WorkedMicros() - before;
    if (OneOf(2)) Turn();
  }

  // Runs the turn that follows the inputs.
  void Turn() {
    const double before = WorkedMicros() - std::exchange(turn_us_, 0);
    const bool has_more = world_.table->PlaceSome(world_.t());
    const double decided = WorkedMicros();
    if (OneOf(plan_.turn_is_cut)) {
      world_.WriteSome([this] { return OneOf(2); });
      return EndHead();
    }
    world_.Write();
    std::vector<HeadOrder> orders = world_.table->TakeOrders();
    const double written = WorkedMicros();
    decided_us_ += decided - before;
    written_us_ += written - decided;
    longest_decided_us_ = std::max(longest_decided_us_, decided - before);
    longest_turn_us_ = std::max(longest_turn_us_, written - before);
    if (OneOf(plan_.turn_is_cut)) return EndHead();
    for (HeadOrder& order : orders) {
      starts_ += std::holds_alternative<PartOrder>(order.what) ? 1 : 0;
      orders_.push_back(std::move(order));
    }
    numbers_.merge(submitted_now_);  // Their users are told now.
    if (has_more) Turn();
  }

  void EndHead() {
    ++lives_;
    orders_.clear();
    submitted_now_.clear();
    for (auto& host : hosts_) Cut(*host, Random(1, 8));
    world_.table.reset();
    world_.Restart();
  }

  void Cut(SimulatedHost& host, int64_t seconds) {
    host.connected = false;
    host.comes_at = now_ + seconds;
  }

  void DisturbHosts() {
    for (auto& host : hosts_) {
      const bool boots = OneOf(plan_.host_boots);
      if (!boots && !OneOf(plan_.host_leaves)) continue;
      const bool was_there = host->connected;
      Cut(*host, boots ? Random(30, 300) : Random(1, 100));
      if (boots) host->BootAnew();
      if (was_there) Do([&] { world_.table->Left(host->name(), world_.t()); });
    }
  }

  // Drains some hosts and ends some drains. The connection may die with the order.
  void DrainSome() {
    for (auto& host : hosts_) {
      const HeadHost* known = world_.table->hosts().Find(host->name());
      if (known == nullptr || !OneOf(known->drained.empty() ? plan_.host_drained : 20)) continue;
      const char* reason = known->drained.empty() ? "ECC" : "";
      const int evict_s = OneOf(5) ? 10 : 1000;
      Do([&] { world_.table->Drain(host->name(), reason, evict_s, world_.t()).IgnoreError(); });
      if (!host->connected || !OneOf(3)) continue;
      Cut(*host, Random(1, 8));
      Do([&] { world_.table->Left(host->name(), world_.t()); });
    }
  }

  // Checks that no part still leaves on a host that is not drained.
  void CheckNobodyLeaves(const SimulatedHost& host) {
    const HeadHost* known = world_.table->hosts().Find(host.name());
    if (!host.connected || known == nullptr || !known->ready() || known->stop_ms != 0) return;
    for (const HeadOrder& order : orders_) {
      if (order.host == host.name() && std::holds_alternative<LeaveOrder>(order.what)) return;
    }
    for (const auto& [job, part] : host.parts()) {
      ASSERT_FALSE(part.lives() && part.is_leaving) << host.name() << " " << job << " " << now_;
    }
  }

  void ConnectHosts() {
    for (auto& host : hosts_) {
      if (host->connected || now_ < host->comes_at) continue;
      host->connected = true;
      Do([&] { world_.Come(host->name(), host->Facts(), host->AllTold()); });
    }
  }

  void PassOnHosts() {
    std::set<uint64_t> alive;
    for (const auto& host : hosts_) {
      for (const auto& [job, part] : host->parts()) {
        if (part.node_rank == 0 && part.lives()) alive.insert(job);
      }
    }
    for (auto& host : hosts_) {
      Tell(*host, host->Pass(now_, [&](uint64_t job) { return alive.contains(job); }));
    }
  }

  void Tell(SimulatedHost& host, const std::vector<PartTold>& told) {
    for (const PartTold& part : told) {
      if (!host.connected) return;
      Do([&] { world_.table->TakePart(host.name(), part, world_.t()); });
    }
  }

  void Deliver() {
    const std::deque<HeadOrder> orders = std::exchange(orders_, {});
    const int life = lives_;
    for (const HeadOrder& order : orders) {
      SimulatedHost& host = *hosts_[std::stoi(order.host.substr(4)) - 1];
      if (lives_ != life || !host.connected) continue;
      absl::Status answer;
      const std::vector<PartTold> told = host.Take(order, now_, &answer);
      Do([&] { world_.table->TakeAnswer(order, answer, world_.t()); });
      Tell(host, told);
    }
  }

  JobRequest AnyJob() {
    JobRequest request = RequestOf(static_cast<int>(OneOf(20) ? Random(9, 64) : Random(1, 8)),
                                   static_cast<int>(Random(1, 8)));
    request.exclusive = OneOf(20);
    if (OneOf(5)) request.max_nodes += 2;
    if (OneOf(10)) request.spares = 1;
    if (OneOf(100)) request.workers = 16;  // No host has as many.
    request.environment.assign(50, "NAME=" + std::string(60, 'x'));
    return request;
  }

  void SubmitSome() {
    for (int i = 0; i < plan_.jobs_a_second; ++i) {
      if (submitted_ >= plan_.jobs) return;
      ++submitted_;
      ClusterUser user = kAlice;
      user.uid += static_cast<uint32_t>(Random(0, 5));
      user.name = "user" + std::to_string(user.uid);
      Do([&] {
        const auto number = world_.table->Submit(user, AnyJob(), world_.t());
        if (number.ok()) submitted_now_.insert(*number);
      });
    }
  }

  void StopSome() {
    if (numbers_.empty()) return;
    const bool all = submitted_ >= plan_.jobs;
    std::vector<uint64_t> stopped;
    for (const uint64_t number : world_.table->jobs().waiting()) {
      const HeadJob& job = *world_.table->jobs().Find(number);
      if (all && job.request.workers == 16) stopped.push_back(number);
    }
    if (OneOf(5)) stopped.push_back(Random(1, *numbers_.rbegin()));
    for (const uint64_t number : stopped) {
      const int signal = OneOf(4) ? SIGKILL : SIGTERM;
      Do([&] { world_.table->Stop(number, "him", signal, -1, world_.t()).IgnoreError(); });
    }
  }

  void Check() {
    for (const auto& host : hosts_) ASSERT_EQ(host->Conflict(), "") << now_;
    for (const auto& host : hosts_) CheckNobodyLeaves(*host);
    for (const auto& [name, host] : world_.table->hosts().all()) {
      if (!host.ready()) continue;  // Perhaps an end there was not kept, but a later start was.
      std::set<int> held;
      for (const auto& [job, what] : host.held) {
        for (const int id : what.devices)
          ASSERT_TRUE(held.insert(id).second) << name << " " << now_;
      }
    }
    for (const auto& [number, job] : world_.table->jobs().all()) {
      if (job.state == ClusterJobState::kEnded) ended_.insert(number);
      if (!job.placed()) continue;
      ASSERT_GE(static_cast<int>(job.parts.size()), job.request.min_nodes);
    }
    if (now_ % 20 == 0) most_memory_ = std::max<double>(most_memory_, ::mallinfo2().uordblks);
  }

  bool Over() const {
    return submitted_ >= plan_.jobs && world_.table->jobs().waiting().empty() &&
           world_.table->jobs().placed().empty();
  }

  std::string Waiting() const {
    std::string text;
    for (const auto& [number, job] : world_.table->jobs().all()) {
      if (job.state != ClusterJobState::kEnded)
        text += std::to_string(number) + ": " + job.why + "\n";
    }
    return text.substr(0, 2000);
  }

  void CheckNothingIsLeft() {
    for (const uint64_t number : numbers_) ASSERT_TRUE(ended_.contains(number)) << number;
    for (const auto& host : hosts_) EXPECT_TRUE(host->parts().empty()) << host->name();
    for (const auto& [name, host] : world_.table->hosts().all()) {
      EXPECT_TRUE(host.held.empty() && host.unwanted.empty()) << name;
      EXPECT_EQ(RoomOf(host).kinds.at("hpu").free.size(), 8u) << name;
    }
  }

  const Plan plan_;
  std::mt19937 random_;
  HeadWorld world_;
  std::vector<std::unique_ptr<SimulatedHost>> hosts_;
  std::deque<HeadOrder> orders_;  // Orders on their way.
  std::set<uint64_t> numbers_, ended_;
  std::set<uint64_t> submitted_now_;  // Jobs whose users have not been told yet.
  int64_t now_ = 0;
  int submitted_ = 0, lives_ = 1;
  int64_t starts_ = 0;
  double decided_us_ = 0, written_us_ = 0, most_memory_ = 0;
  double turn_us_ = 0;  // Time of the unfinished turn.
  double longest_turn_us_ = 0, longest_decided_us_ = 0;
};

TEST(HeadSimulation, KeepsItsPromisesWithManyHostsAndJobs) {
  Simulation simulation({}, 1);
  simulation.Run();
  simulation.Print();
}

TEST(HeadSimulation, KeepsItsPromisesInManyWorlds) {
  for (uint32_t seed = 1; seed <= kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Plan plan;
    plan.hosts = 70;
    plan.jobs = 150;
    plan.host_leaves = 300;
    plan.host_boots = 2000;
    plan.head_ends = 20;
    plan.turn_is_cut = 300;
    Simulation simulation(plan, seed);
    simulation.Run();
  }
}

}  // namespace
}  // namespace hlaunch
