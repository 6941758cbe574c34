// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/round/table/round_table.h"
#include "rendezvous/round/values/job_record.h"
#include "tests/rendezvous/simulator/simulated_agent.h"

// Checks what RoundTable promises against what the simulation knows: which agents live, what the
// table was told and what it said. O(1) for a message; O(n) when a round begins or ends.

namespace hlaunch {

class Promises {
 public:
  using Agents = std::vector<std::unique_ptr<SimulatedAgent>>;  // By incarnation - 1.

  Promises(const JobPolicy& policy, const Agents& agents) : policy_(policy), agents_(agents) {}

  // The first promise that was broken; empty if none was.
  const std::string& violation() const { return violation_; }
  void Violated(std::string what);

  // The agent that holds the master store of `round`; -1 if `round` is not the one kept last.
  int Master(Round round) const {
    return round == kept_.round && !kept_.layout->by_rank.empty() ? kept_.layout->by_rank[0] : -1;
  }

  // Facts of the simulation, whether or not the rendezvous knows them.
  void Started(const SimulatedAgent& agent, const Assignment& assignment);
  void Succeeded(const SimulatedAgent& agent);
  void Failed(Round round) { ++failures_[round]; }
  void Gone(const SimulatedAgent& agent, Instant now);
  void Exited(const SimulatedAgent& agent);
  // The agent's process is gone. From now on nothing that arrives of it is a sign of life.
  void Died(const SimulatedAgent& agent, Instant now, bool table_paused);

  // What the table was told. For each call of the table, one of these is called, then Checked.
  void Joins(const SimulatedAgent& agent);
  void Joined(const SimulatedAgent& agent, const NodeUpdate& update, Instant now);
  void Refused(const SimulatedAgent& agent, const NodeUpdate& update, const absl::Status& status,
               const RoundTable& table, Instant now);
  void Updated(const SimulatedAgent& agent, const NodeUpdate& update, const absl::Status& status,
               Instant now, bool counts = true);
  void Heard(const SimulatedAgent& agent, Instant now);
  void Detached(const SimulatedAgent& agent);
  void Reported(const SimulatedAgent& agent);
  void Asked(int slot, Instant now);
  // The table is paused for `duration`.
  void Paused(Duration duration) {
    ++pauses_;
    ++disturbances_;
    paused_ += duration;
  }
  void Ticked(const RoundTable& table, Instant now);
  // After each call of the table, before nodes are told any result of it.
  void Ended(const RoundTable::Ended& ended, Instant now);
  void Checked(const RoundTable& table, Instant now);
  // The decision of a call, if it changed anything.
  void Recorded(const JobRecord& record, const RoundTable& table, Instant now);

  struct Member {
    int node_rank = 0;
    Rank first_rank = 0;
    int agent = 0;
  };
  struct Layout {
    std::map<int, Member> by_slot;
    std::vector<int> by_rank;  // Agents by node rank.
    int world_size = 0;
    std::string master_addr;
    uint16_t master_port = 0;
  };
  struct Decided {
    JobState state = JobState::kForming;
    Round round = 0;
    int restarts = 0;
    // The layout of the round. All decisions of one round share it.
    std::shared_ptr<const Layout> layout = std::make_shared<Layout>();
    std::map<int, int> held;  // By slot: the node rank in the last round.
  };
  // The latest decision. Kept() notes that a decision was kept; only then may nodes be told.
  const Decided& decided() const { return decided_; }
  void Kept(const Decided& decided) { kept_ = decided; }
  void CallOver();
  void Restored(const JobRecord& record, const RoundTable& table, Instant now);
  // Checks a directive that a node is about to be told.
  void Told(const SimulatedAgent& agent, const Directive& directive);

 private:
  // What the table can know about an incarnation.
  struct Seen {
    bool attached = false;
    bool left = false;
    bool ended = false;  // Lost, replaced, reported dead or excluded.
    Instant heard;
    int pauses = 0;     // Pauses of the table until this agent was last heard.
    Duration paused{};  // Their total length.
    Instant asked, asked_last;
    Round prepared = 0;
    bool fit = false;
    bool bad = false, was_bad = false;  // Its last measurement of itself, and the one before.
    Round succeeded = 0;
    std::optional<Instant> died;
    int disturbances = 0;  // Pauses and restores of the table until then.
    Round ready = 0;       // The last round after which it was ready.
    uint16_t port = 0;     // Its port then.
  };

  Seen& Of(const SimulatedAgent& agent);
  void Take(const SimulatedAgent& agent, const NodeUpdate& update, Instant now, bool counts);
  static bool IsMember(const SimulatedAgent& agent, const Decided& decided);
  std::string Living() const;  // Names workers that live though they should not; empty if none.
  void NewRound(const JobRecord& record, const RoundTable& table, Instant now);
  void RankOrder(const Layout& layout, Instant now);
  void Runs(const JobRecord& record);
  void Charged(const JobRecord& record);
  void ChargedRightly(const JobRecord& record);
  bool MayBeNode() const;
  // Whether a worker of the round failed with an exit code for which `kind` is true.
  template <typename Kind>
  bool AnyCode(const Kind& kind) const {
    const auto codes = codes_.find(decided_.round);
    return codes != codes_.end() && std::any_of(codes->second.begin(), codes->second.end(), kind);
  }
  bool Named(const std::string& set) const;
  bool OthersThan(const std::string& set) const;
  void Sized(int nodes, Instant now);
  void Grows(const JobRecord& record, Instant now);
  void Over(const JobRecord& record, Instant now);

  const JobPolicy policy_;
  const Agents& agents_;
  std::string violation_;

  std::map<Round, std::set<int>> live_;  // Agents with living workers.
  std::map<Round, int> failures_;        // Failed workers of each round.
  std::vector<Round> succeeded_;
  std::vector<Seen> seen_;

  // The call of the table that is being checked.
  int joining_ = -1;        // Agent that joins.
  int reported_ = -1;       // Agent whose death was reported.
  Round failed_round_ = 0;  // A worker of this round failed; the table may judge that later.
  bool fault_ = false;      // A restart follows this call.
  std::map<Round, std::set<int>> codes_;  // Exit codes of failed workers that the table was told.
  JobState state_ = JobState::kForming;
  Instant forming_since_;
  Duration pause_{};                // The pause before the next round begins.
  std::optional<Instant> grew_at_;  // When a round last ended for nodes that had joined.
  int largest_ = 0;                 // Nodes in the largest round.
  int pauses_ = 0;
  int disturbances_ = 0;
  Duration paused_{};

  Decided decided_, kept_;
  std::optional<int> exit_code_;
};

}  // namespace hlaunch
