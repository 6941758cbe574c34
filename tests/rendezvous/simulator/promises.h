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

#include "rendezvous/round/job_record.h"
#include "rendezvous/table/round_table.h"
#include "tests/rendezvous/simulator/simulated_agent.h"

// What RoundTable promises, told from what the simulation knows: who lives, what was said to the
// table and what the table said. O(1) for a message; O(n) when a round begins or ends.

namespace hlaunch {

class Promises {
 public:
  using Agents = std::vector<std::unique_ptr<SimulatedAgent>>;  // By incarnation - 1.

  Promises(const JobPolicy& policy, const Agents& agents) : policy_(policy), agents_(agents) {}

  // The first promise that was broken; empty: none.
  const std::string& violation() const { return violation_; }
  void Violated(std::string what);

  // The agent that holds the master store of a round that was kept, -1 if none does.
  int Master(Round round) const {
    return round == kept_.round && !kept_.layout->by_rank.empty() ? kept_.layout->by_rank[0] : -1;
  }

  // What is so, whoever knows it.
  void Started(const SimulatedAgent& agent, const Assignment& assignment);
  void Succeeded(const SimulatedAgent& agent);
  void Failed(Round round) { ++failures_[round]; }
  void Gone(const SimulatedAgent& agent, Instant now);
  void Exited(const SimulatedAgent& agent);

  // What the table was told. Each call of the table is one of these, then Checked.
  void Joins(const SimulatedAgent& agent);
  void Joined(const SimulatedAgent& agent, const NodeUpdate& update, Instant now);
  void Refused(const SimulatedAgent& agent, const NodeUpdate& update, const absl::Status& status,
               const RoundTable& table, Instant now);
  void Updated(const SimulatedAgent& agent, const NodeUpdate& update, const absl::Status& status,
               Instant now);
  void Heard(const SimulatedAgent& agent, Instant now);
  void Detached(const SimulatedAgent& agent);
  void Reported(const SimulatedAgent& agent);
  void Asked(int slot, Instant now);
  // The table is paused for so long.
  void Paused(Duration duration) {
    ++pauses_;
    paused_ += duration;
  }
  void Ticked(const RoundTable& table, Instant now);
  // After each call, before anything of it is told.
  void Ended(const RoundTable::Ended& ended, Instant now);
  void Checked(const RoundTable& table, Instant now);
  // What was decided, if anything changed.
  void Recorded(const JobRecord& record, const RoundTable& table, Instant now);

  struct Member {
    int node_rank = 0;
    Rank first_rank = 0;
    int agent = 0;
  };
  struct Layout {
    std::map<int, Member> by_slot;
    std::vector<int> by_rank;  // Agents.
    int world_size = 0;
    std::string master_addr;
    uint16_t master_port = 0;
  };
  struct Decided {
    JobState state = JobState::kForming;
    Round round = 0;
    int restarts = 0;
    // Of the round. Shared by all that was decided while it lasts.
    std::shared_ptr<const Layout> layout = std::make_shared<Layout>();
    std::map<int, int> held;  // By slot: rank in the round before.
  };
  // All that was decided by now, and that it is kept. What is told must be kept.
  const Decided& decided() const { return decided_; }
  void Kept(const Decided& decided) { kept_ = decided; }
  void CallOver();
  void Restored(const JobRecord& record, const RoundTable& table, Instant now);
  // What a node is about to be told.
  void Told(const SimulatedAgent& agent, const Directive& directive);

 private:
  // What the table can know of an incarnation.
  struct Seen {
    bool attached = false;
    bool left = false;
    bool ended = false;  // Lost, replaced, reported dead or excluded.
    Instant heard;
    int pauses = 0;     // Of the table, when it was heard;
    Duration paused{};  // how long they were.
    Instant asked, asked_last;
    Round prepared = 0;
    bool fit = false;
    bool bad = false, was_bad = false;  // As it measured itself the last and the last but one time.
    Round succeeded = 0;
    Round ready = 0;  // The last round after which it was ready, and its port then.
    uint16_t port = 0;
  };

  Seen& Of(const SimulatedAgent& agent);
  void Take(const SimulatedAgent& agent, const NodeUpdate& update, Instant now);
  static bool IsMember(const SimulatedAgent& agent, const Decided& decided);
  std::string Living() const;  // One whose workers live though they should not.
  void NewRound(const JobRecord& record, const RoundTable& table, Instant now);
  void RankOrder(const Layout& layout, Instant now);
  void Runs(const JobRecord& record);
  void Charged(const JobRecord& record);
  void ChargedRightly(const JobRecord& record);
  bool MayBeNode() const;
  // Whether a worker of the round failed with a code of that kind.
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

  std::map<Round, std::set<int>> live_;  // Agents.
  std::map<Round, int> failures_;        // Of workers.
  std::vector<Round> succeeded_;
  std::vector<Seen> seen_;

  // The call that is being made.
  int joining_ = -1;        // Agent.
  int reported_ = -1;       // Agent.
  Round failed_round_ = 0;  // A worker of it failed, which may be judged a little later.
  bool fault_ = false;      // It is one that a restart follows.
  std::map<Round, std::set<int>> codes_;  // With which workers failed, as far as was told.
  JobState state_ = JobState::kForming;
  Instant forming_since_;
  Duration pause_{};                // Before the round that is decided.
  std::optional<Instant> grew_at_;  // A round last ended for nodes that had joined.
  int largest_ = 0;                 // Nodes of the largest round.
  int pauses_ = 0;
  Duration paused_{};

  Decided decided_, kept_;
  std::optional<int> exit_code_;
};

}  // namespace hlaunch
