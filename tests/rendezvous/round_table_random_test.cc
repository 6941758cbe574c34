// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <deque>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rendezvous/round_table.h"
#include "tests/rendezvous/rounds.h"

// Drives one RoundTable with agents that obey, on a network that loses, doubles and delays, and
// checks the promises after every step. The seed is part of every message.

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Directive::Kind;
using Phase = NodePhase;

// One agent process with its workers, as the agent's contract has it.
struct Process {
  NodeInfo info;
  NodeUpdate says;
  bool alive = true;
  bool connected = false;
  bool deaf = false;  // Nothing gets through, and no one is told.
  Round workers = 0;  // The round whose workers live, 0 if none.
  Rank first_rank = 0;
  Instant stop_at;  // If told to stop: when its workers are gone.
  std::optional<Phase> then;
  Instant heard;  // From the rendezvous.
  Instant beat;
  std::deque<Directive> down;   // On its stream, in order.
  std::deque<NodeUpdate> late;  // Of streams that broke, still to be read at the other end.

  void Die() {
    alive = false;
    connected = false;
    workers = 0;
    down.clear();
  }
};

class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed),
        nodes_(2 + Below(49)),
        min_nodes_(OneIn(3) ? 1 + Below(nodes_) : nodes_),
        max_restarts_(Below(10)),
        table_(Rules()) {
    calmness_ = 1 << Below(6);
    explicit_ranks_ = OneIn(2);
    for (int i = 0; i < nodes_; ++i) NewProcess(i, absl::StrCat("node", i));
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (table_.state() == RoundTable::State::kOver) break;
      Pass(milliseconds(OneIn(50) ? Below(20000) : Below(300)));
      if (OneIn(calmness_)) Fault(processes_[Below(static_cast<int>(processes_.size()))]);
    }
    calm_ = true;  // No more faults: the job must end by itself, or by its join time-out.
    for (int i = 0; i < 4000 && !testing::Test::HasFailure() && !Done(); ++i) {
      Pass(milliseconds(500));
    }
    EXPECT_TRUE(Done()) << "waits for ever: " << table_.Explain(now_);
    EXPECT_FALSE(table_.Explain(now_).empty());
  }

  uint64_t steps() const { return steps_; }
  Round round() const { return table_.round(); }

 private:
  JobRules Rules() const {
    JobRules rules;
    rules.job_id = "job";
    rules.policy = Policy(min_nodes_, nodes_, max_restarts_);
    rules.policy.last_call = seconds(2);
    return rules;
  }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  // Over, or everybody went away before the first round.
  bool Done() const {
    return table_.AllFinished() || table_.Explain(now_) == "no node has joined yet";
  }

  void NewProcess(int i, const std::string& host) {
    Process process;
    process.info = Node(i, min_nodes_, nodes_);
    process.info.incarnation = ++last_incarnation_;
    process.info.host = host;
    if (explicit_ranks_) process.info.node_rank = i;
    process.says = Says(0, Phase::kReady);
    process.heard = process.beat = now_;
    processes_.push_back(std::move(process));
  }

  // Time passes in steps of the table's deadlines; everybody lives meanwhile.
  void Pass(Duration duration) {
    const Instant end = now_ + duration;
    while (now_ < end && !testing::Test::HasFailure()) {
      now_ = std::min(end, now_ + milliseconds(500));
      if (const auto due = table_.NextDeadline(); due && *due <= now_) table_.Tick(now_);
      Push();
      for (size_t i = 0; i < processes_.size(); ++i) Live(processes_[i]);
      Push();
      Check();
      ++steps_;
    }
  }

  void Live(Process& p) {
    if (!p.alive) return;
    if (now_ - p.heard >= seconds(30)) return p.Die();  // The loss limit.
    if (p.then && now_ >= p.stop_at) {
      p.workers = 0;
      p.says.phase = *p.then;
      if (p.says.phase == Phase::kReady)
        p.says.store_port = static_cast<uint16_t>(1 + Below(60000));
      p.then.reset();
      Send(p);
    }
    if (!p.connected && !p.deaf && (calm_ || OneIn(4))) Connect(p);
    if (p.connected && !p.deaf) Talk(p);
    if (p.workers != 0 && p.says.phase == Phase::kRunning && OneIn(calm_ ? 8 : 400)) {
      p.says.phase = Phase::kSucceeded;
      Send(p);
    }
  }

  void Talk(Process& p) {
    if (now_ - p.beat >= seconds(2)) {
      p.beat = p.heard = now_;
      table_.Heard(p.info.node_id, p.info.incarnation, now_);
    }
    while (!p.late.empty() && OneIn(2)) {
      table_.Update(p.info.node_id, p.info.incarnation, p.late.front(), now_).IgnoreError();
      p.late.pop_front();
    }
    while (p.alive && p.connected && !p.down.empty() && (calm_ || OneIn(2))) {
      const Directive directive = p.down.front();
      p.down.pop_front();
      p.heard = now_;
      Obey(p, directive);
    }
  }

  void Connect(Process& p) {
    const absl::Status status = table_.Join(p.info, p.says, false, now_);
    if (!status.ok()) {
      EXPECT_NE(status.code(), absl::StatusCode::kInvalidArgument) << status;
      if (!absl::IsAlreadyExists(status)) p.Die();  // Else it tries again, as its user would.
      return;
    }
    p.connected = true;
    p.heard = now_;
    p.down.clear();
  }

  void Break(Process& p) {
    if (!p.connected) return;
    p.connected = false;
    p.down.clear();
    if (OneIn(2)) p.late.push_back(p.says);
    if (!OneIn(4)) table_.Disconnected(p.info.node_id, p.info.incarnation, now_);
  }

  void Send(Process& p) {
    if (!p.connected || p.deaf) return;
    for (int times = OneIn(8) ? 2 : 1; times > 0; --times) {
      const absl::Status status = table_.Update(p.info.node_id, p.info.incarnation, p.says, now_);
      EXPECT_NE(status.code(), absl::StatusCode::kInvalidArgument) << status;
      if (!status.ok()) return p.Die();
    }
    if (OneIn(10)) p.late.push_back(p.says);
  }

  void Obey(Process& p, const Directive& directive) {
    if (p.says.phase == Phase::kFinished || (p.then && *p.then == Phase::kLeft)) return;
    switch (directive.kind) {
      case Kind::kWait:
      case Kind::kPrepare:
        return;
      case Kind::kRun:
        if (directive.round <= p.says.round || p.says.phase != Phase::kReady) return;
        CheckAssignment(p, directive.assignment);
        p.says = Says(directive.round, Phase::kRunning);
        p.workers = directive.round;
        p.first_rank = directive.assignment.first_rank;
        return Send(p);
      case Kind::kStop:
        if (p.says.phase == Phase::kReady && p.says.round == directive.round) return;
        if (directive.round < p.says.round || p.then || p.says.phase == Phase::kLeft) return;
        p.says.round = directive.round;  // Also if it never heard of it.
        return Stop(p, Phase::kReady);
      case Kind::kFinish:
        return Stop(p, Phase::kFinished);
    }
  }

  void Stop(Process& p, Phase then) {
    p.then = then;
    p.stop_at = now_ + milliseconds(p.workers == 0 ? 0 : Below(3000));
  }

  void Fault(Process& p) {
    if (!p.alive) return;
    switch (Below(14)) {
      case 0:
      case 1:
        if (p.workers == 0 || p.then || p.says.phase == Phase::kSucceeded) return;
        p.says.phase = Phase::kFailed;
        if (p.says.failures.size() < 16) p.says.failures.push_back(Failure(p.first_rank, 1));
        return Send(p);
      case 2:  // The agent is killed; its keeper reports, and a new one may start.
        if (!OneIn(4)) return;
        p.Die();
        if (OneIn(2))
          table_.NodeDied(p.info.node_id, p.info.incarnation, "test", now_).IgnoreError();
        if (OneIn(2)) table_.Disconnected(p.info.node_id, p.info.incarnation, now_);
        return Again(p.info, OneIn(2));
      case 3:  // Cut off: nobody hears anything, the workers go on until the loss limit.
        if (!OneIn(4)) return;
        p.deaf = true;
        if (OneIn(2)) return Again(p.info, /*elsewhere=*/true);
        return;
      case 4:
        if (!OneIn(8) || p.says.phase == Phase::kFinished || p.says.phase == Phase::kLeft) return;
        p.says.left_exit_code = 130;
        return Stop(p, Phase::kLeft);
      case 5:  // The rendezvous' process is stopped for a while.
        if (OneIn(20)) now_ += seconds(Below(120));
        return;
      case 6:
        if (!p.deaf) return;
        p.deaf = false;
        return Send(p);  // The stream held, and brings it late.
      default:
        return Break(p);
    }
  }

  // A new agent in this node's place. One on the same host is proof that the old one is dead.
  void Again(const NodeInfo& info, bool elsewhere) {
    int index = 0;
    while (absl::StrCat("id", index) != info.node_id) ++index;
    if (!OneIn(3))
      NewProcess(index, elsewhere ? absl::StrCat("spare", last_incarnation_) : info.host);
  }

  // What the table wants to say goes onto the streams.
  void Push() {
    for (const RoundTable::Ended& ended : table_.TakeEnded()) {
      for (Process& p : processes_) {
        if (p.info.incarnation == ended.incarnation && p.connected && !p.deaf) p.Die();
      }
    }
    for (const std::string& id : table_.TakeChanged()) {
      for (Process& p : processes_) {
        if (p.info.node_id != id || !p.connected) continue;
        if (!p.down.empty() && OneIn(2)) p.down.pop_back();  // The latest wins.
        p.down.push_back(table_.DirectiveFor(id));
      }
    }
  }

  void CheckAssignment(const Process& p, const Assignment& a) {
    EXPECT_GE(a.round, last_round_);
    EXPECT_GE(a.restart_count, last_restart_count_);
    last_round_ = a.round;
    last_restart_count_ = a.restart_count;
    EXPECT_LT(a.node_rank, a.num_nodes);
    EXPECT_EQ(a.first_rank, a.node_rank * p.info.nproc);
    EXPECT_EQ(a.world_size, a.num_nodes * p.info.nproc);
    EXPECT_GE(a.num_nodes, min_nodes_);
    if (min_nodes_ == nodes_ && explicit_ranks_) {
      EXPECT_EQ(a.node_rank, *p.info.node_rank);
    }
    EXPECT_NE(a.master_port, 0);
    EXPECT_LE(a.restart_count, max_restarts_);
  }

  // One round with live workers, and one holder of every rank in it.
  void Check() {
    Round live = 0;
    std::set<Rank> ranks;
    for (const Process& p : processes_) {
      if (p.workers == 0) continue;
      if (live == 0) live = p.workers;
      ASSERT_EQ(p.workers, live) << "two rounds live at once";
      ASSERT_TRUE(ranks.insert(p.first_rank).second) << "two holders of rank " << p.first_rank;
    }
    ASSERT_GE(table_.round(), seen_round_);
    seen_round_ = table_.round();
  }

  std::mt19937_64 random_;
  const int nodes_;
  int min_nodes_ = 1;
  int max_restarts_ = 0;
  int calmness_ = 1;
  bool explicit_ranks_ = false;
  bool calm_ = false;
  Instant now_ = Instant{} + std::chrono::hours(1);
  RoundTable table_;
  std::deque<Process> processes_;
  Incarnation last_incarnation_ = 0;
  Round last_round_ = 0, seen_round_ = 0;
  int last_restart_count_ = 0;
  uint64_t steps_ = 0;
};

TEST(RoundTableAtRandom, KeepsItsPromises) {
  uint64_t steps = 0;
  Round rounds = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world(seed);
    world.Run(600);
    steps += world.steps();
    rounds += world.round();
    if (HasFailure()) return;
  }
  RecordProperty("steps", static_cast<int>(steps));
  RecordProperty("rounds", static_cast<int>(rounds));
  EXPECT_GT(rounds, 800);  // Else it tests nothing.
}

}  // namespace
}  // namespace hlaunch
