// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/simulator/promises.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/decide/exit_set.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Duration kAsk = seconds(1);
constexpr Duration kAskAgain = seconds(10);

std::string RoundName(Round round) { return absl::StrCat("round ", round); }

}  // namespace

void Promises::Violated(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

Promises::Seen& Promises::Of(const SimulatedAgent& agent) {
  if (seen_.size() < agents_.size()) seen_.resize(agents_.size());
  return seen_[static_cast<size_t>(agent.index())];
}

bool Promises::IsMember(const SimulatedAgent& agent, const Decided& decided) {
  const auto it = decided.layout->by_slot.find(agent.slot());
  return it != decided.layout->by_slot.end() && it->second.agent == agent.index();
}

// ---- Facts.

std::string Promises::Living() const {
  for (const auto& [round, agents] : live_) {
    for (const int index : agents) {
      const SimulatedAgent& agent = *agents_[static_cast<size_t>(index)];
      if (!agent.excused())
        return absl::StrCat("workers of ", RoundName(round), " on ", agent.Name());
    }
  }
  return "";
}

void Promises::Started(const SimulatedAgent& agent, const Assignment& assignment) {
  const auto name = [&] { return absl::StrCat(agent.Name(), " in ", RoundName(assignment.round)); };
  for (const auto& [round, agents] : live_) {
    if (round == assignment.round || agents.empty() || agent.excused()) continue;
    for (const int index : agents) {
      const SimulatedAgent& other = *agents_[static_cast<size_t>(index)];
      if (other.excused()) continue;
      Violated(absl::StrCat("two rounds live at once: ", name(), " and ", other.Name(), " in ",
                            RoundName(round)));
    }
  }
  live_[assignment.round].insert(agent.index());
  if (assignment.round > kept_.round) {
    Violated(absl::StrCat(name(), " starts workers of a round that was never kept"));
  } else if (assignment.round < kept_.round) {
    if (!agent.excused()) {
      Violated(absl::StrCat(name(), " starts workers though ", RoundName(kept_.round), " exists"));
    }
  } else {
    const auto it = kept_.layout->by_slot.find(agent.slot());
    if (!IsMember(agent, kept_)) {
      Violated(absl::StrCat(name(), " starts workers and is no member"));
    } else if (it->second.node_rank != assignment.node_rank ||
               it->second.first_rank != assignment.first_rank) {
      Violated(
          absl::StrCat(name(), " starts node rank ", assignment.node_rank, ", held by another"));
    }
  }
}

void Promises::Succeeded(const SimulatedAgent& agent) {
  if (succeeded_.size() < agents_.size()) succeeded_.resize(agents_.size());
  succeeded_[static_cast<size_t>(agent.index())] = agent.says().round;
  for (auto& [round, agents] : live_) agents.erase(agent.index());
}

void Promises::Gone(const SimulatedAgent& agent, Instant now) {
  const Instant limit =
      std::max(agent.paused_until(), agent.asks_until()) + SimulatedAgent::kLostGrace + seconds(1);
  for (auto it = live_.begin(); it != live_.end();) {
    if (it->second.erase(agent.index()) > 0 && agent.excused() && now > limit) {
      Violated(absl::StrCat(agent.Name(), " kept its workers for too long after a pause"));
    }
    it = it->second.empty() ? live_.erase(it) : std::next(it);
  }
}

void Promises::Exited(const SimulatedAgent& agent) {
  if (agent.workers() != 0) Violated(absl::StrCat(agent.Name(), " went and left its workers"));
  if (!agent.outcome() || agent.leaving() || agent.dismissed()) return;
  if (!exit_code_) exit_code_ = agent.outcome()->exit_code;
  if (*exit_code_ != agent.outcome()->exit_code) {
    Violated(absl::StrCat("two outcomes: ", *exit_code_, " and, for ", agent.Name(), ", ",
                          agent.outcome()->exit_code));
  }
}

// ---- What the table was told.

void Promises::Take(const SimulatedAgent& agent, const NodeUpdate& update, Instant now,
                    bool counts) {
  Seen& seen = Of(agent);
  if (counts) Heard(agent, now);
  if (update.phase == NodePhase::kPrepared && update.round > seen.prepared) {
    seen.prepared = update.round;
    seen.fit = update.unfit.empty();
    seen.was_bad = seen.bad;
    seen.bad = update.health.figures[Figure::kProcessor] > 3;
  }
  if (update.phase == NodePhase::kSucceeded) seen.succeeded = update.round;
  if (update.phase == NodePhase::kReady && update.round >= seen.ready) {
    seen.ready = update.round;
    seen.port = update.store_port;
  }
  const bool member = IsMember(agent, decided_) && !seen.left && !seen.ended;
  if (member && update.round == decided_.round && !update.failures.empty()) {
    failed_round_ = decided_.round;
    for (const WorkerFailure& failure : update.failures) {
      codes_[decided_.round].insert(failure.exit_code);
    }
  }
  if (member && update.round == decided_.round && !update.workers_lost.empty()) fault_ = true;
  if (update.phase == NodePhase::kLeft) {
    if (member) fault_ = true;
    seen.left = true;
  }
}

void Promises::Joins(const SimulatedAgent& agent) { joining_ = agent.index(); }

void Promises::Joined(const SimulatedAgent& agent, const NodeUpdate& update, Instant now) {
  Seen& seen = Of(agent);
  if (seen.ended) Violated(absl::StrCat(agent.Name(), " was given up and is here again"));
  seen.attached = true;
  if (seen.died) seen.died = now;  // A join that was under way needs no proof: see DESIGN.md.
  Take(agent, update, now, true);
}

void Promises::Refused(const SimulatedAgent& agent, const NodeUpdate& update,
                       const absl::Status& status, const RoundTable& table, Instant now) {
  const auto wrong = [&] {
    Violated(absl::StrCat(agent.Name(), " was refused: ", status.ToString()));
  };
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return;
    case absl::StatusCode::kFailedPrecondition:
      if (table.state() != JobState::kOver) wrong();
      return;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
      // It was given up, or it names a round that went on without it before the table was restored.
      // An agent that has left ends anyway.
      if (Of(agent).ended || update.phase == NodePhase::kLeft) return;
      if (IsMember(agent, decided_) || update.round == 0) wrong();
      return;
    case absl::StatusCode::kAlreadyExists:
      for (const auto& other : agents_) {
        const bool claims = other->slot() == agent.slot() && other->index() != agent.index();
        if (!claims) continue;
        const Seen& holder = Of(*other);
        if (now - holder.heard <= kAskAgain + kAsk || holder.pauses != pauses_) return;
      }
      return wrong();
    default:
      return wrong();
  }
}

void Promises::Updated(const SimulatedAgent& agent, const NodeUpdate& update,
                       const absl::Status& status, Instant now, bool counts) {
  if (status.ok()) {
    Take(agent, update, now, counts);
  } else if (absl::IsInvalidArgument(status)) {
    Violated(absl::StrCat(agent.Name(), " keeps the contract and is told: ", status.ToString()));
  }
}

void Promises::Died(const SimulatedAgent& agent, Instant now, bool table_paused) {
  Seen& seen = Of(agent);
  seen.died = now;
  seen.disturbances = table_paused ? -1 : disturbances_;
}

void Promises::Heard(const SimulatedAgent& agent, Instant now) {
  Seen& seen = Of(agent);
  seen.heard = now;
  seen.pauses = pauses_;
  seen.paused = paused_;
}

void Promises::Detached(const SimulatedAgent& agent) { Of(agent).attached = false; }

void Promises::Reported(const SimulatedAgent& agent) {
  Of(agent).attached = false;
  reported_ = agent.index();
}

void Promises::Asked(int slot, Instant now) {
  for (const auto& agent : agents_) {
    Seen& seen = Of(*agent);
    if (agent->slot() != slot || seen.ended) continue;
    const bool unanswered = seen.asked > Instant{} && seen.heard < seen.asked;
    if (!unanswered) seen.asked = now;  // Otherwise keep the time of the first unanswered question.
    seen.asked_last = now;
  }
}

void Promises::Ticked(const RoundTable& table, Instant now) {
  const std::optional<Instant> next = table.NextDeadline();
  if (next && *next <= now) Violated(absl::StrCat("due again at once: ", table.Explain(now)));
  const bool only_local = agents_[0]->local() && agents_[0]->alive();
  if (!next && !only_local && !table.Deserted() && table.state() != JobState::kOver) {
    Violated(absl::StrCat("waits without a deadline: ", table.Explain(now)));
  }
}

// An agent may lose its place only by silence, a report, a claim or an exclusion.
void Promises::Ended(const RoundTable::Ended& ended, Instant now) {
  if (ended.incarnation == 0 || ended.incarnation > agents_.size()) {
    return Violated("an unknown incarnation was given up");
  }
  const SimulatedAgent& agent = *agents_[ended.incarnation - 1];
  Seen& seen = Of(agent);
  const Duration silence = now - seen.heard;
  const Lease& lease = policy_.lease;
  const bool claimed = joining_ >= 0 && joining_ != agent.index() &&
                       agents_[static_cast<size_t>(joining_)]->slot() == agent.slot();
  // If two agents claim its place in turn, it is asked twice. An answer to the first question is
  // no answer to the last one.
  const auto silent_since = [&](Instant asked) {
    return asked > Instant{} && seen.heard <= asked && now - asked >= kAsk;
  };
  const bool unanswered = silent_since(seen.asked) || silent_since(seen.asked_last);
  // The table subtracts the lateness of a Tick from every silence. Lateness of up to two seconds
  // does not count as a pause.
  const Duration slack = (pauses_ - seen.pauses) * seconds(4);
  const Duration awake = silence - (paused_ - seen.paused);
  const Duration limit = lease.loss_limit + lease.margin;
  const bool lost = silence >= limit && awake + slack >= limit;
  // A bad node is excluded only after two bad measurements in a row. Node rank 0 is also excluded
  // if the others do not reach it.
  const bool fit = seen.prepared == decided_.round && seen.fit && !(seen.bad && seen.was_bad);
  const bool excluded = absl::IsFailedPrecondition(ended.status) &&
                        state_ == JobState::kPreflight &&
                        !(fit && decided_.layout->by_rank[0] != agent.index());
  // It is dismissed, but may not have been told yet.
  const bool apart = agent.drained() && agent.workers() == 0;
  const bool replaced =
      claimed && (seen.left || apart || !seen.attached || silence >= lease.lease || unanswered);
  // What a dead process has left on its way may arrive for a while, but not after a silence.
  const Duration dead_for = seen.died ? now - *seen.died : Duration::zero();
  if (lost && seen.disturbances == disturbances_ && dead_for > limit + lease.lease + seconds(10)) {
    Violated(absl::StrCat(agent.Name(), " was given up only ",
                          std::chrono::duration_cast<seconds>(dead_for).count(),
                          " s after its death"));
  }
  if (reported_ != agent.index() && !lost && !excluded && !replaced) {
    Violated(absl::StrCat(agent.Name(), " was given up after ",
                          std::chrono::duration_cast<seconds>(silence).count(),
                          " s: ", ended.status.ToString()));
  }
  if (IsMember(agent, decided_) && !seen.left && seen.succeeded != decided_.round) fault_ = true;
  seen.ended = true;
  seen.attached = false;
}

void Promises::Checked(const RoundTable& table, Instant now) {
  if (table.round() < decided_.round) Violated("the round went back");
  if (table.round() > decided_.round + 1) Violated("a round was left out");
  if (table.state() != state_) {
    state_ = table.state();
    if (state_ == JobState::kForming) forming_since_ = now;
  }
}

void Promises::CallOver() {
  joining_ = reported_ = -1;
  fault_ = false;
}

// ---- What was kept.

void Promises::Recorded(const JobRecord& record, const RoundTable& table, Instant now) {
  Charged(record);
  if (record.round != decided_.round) NewRound(record, table, now);
  const bool runs = record.state == JobState::kRunning;
  if (runs && decided_.state != JobState::kRunning) Runs(record);
  if (record.state == JobState::kStopping && decided_.state == JobState::kRunning) {
    Grows(record, now);
  }
  if (record.state == JobState::kOver && decided_.state != JobState::kOver) Over(record, now);
  if (decided_.state == JobState::kOver && record.state != JobState::kOver) {
    Violated("a job that was over goes on");
  }
  decided_.state = record.state;
  decided_.round = record.round;
  decided_.restarts = record.restarts;
  pause_ = record.restart_log.pause;
}

// Only a failure in a running round leads to a restart, or one that keeps a round from running.
void Promises::Charged(const JobRecord& record) {
  const bool kept_from_running = decided_.state == JobState::kPreflight &&
                                 record.state == JobState::kStopping &&
                                 absl::StrContains(record.cause, "cannot start");
  if (kept_from_running && record.restarts == decided_.restarts + 1) return;
  const bool ran = decided_.state == JobState::kRunning;
  const bool stops = record.round > decided_.round || record.state == JobState::kStopping ||
                     record.state == JobState::kForming;
  const bool fault = fault_ || failed_round_ == decided_.round;
  const int expected = decided_.restarts + (ran && stops && fault ? 1 : 0);
  if (record.restarts != expected) {
    Violated(absl::StrCat(record.restarts, " restarts are counted and not ", expected, ": ",
                          record.cause));
  }
  if (record.restart_log.charged.size() > static_cast<size_t>(policy_.max_restarts)) {
    Violated("more restarts are charged than there may be");
  }
  const bool lost = fault_ && failed_round_ != decided_.round;
  if (ran && stops && lost && policy_.on_loss == OnLoss::kFail) {
    Violated("the job goes on after a loss that ends it");
  }
  if (record.restarts > decided_.restarts) ChargedRightly(record);
}

// Whether the loss of a node may be the cause. It cannot be the cause in odd rounds without a
// fault: there the failures of workers do not look like consequences.
bool Promises::MayBeNode() const { return fault_ || decided_.round % 2 == 0; }

// Whether `set` names something that may have failed in the round.
bool Promises::Named(const std::string& set) const {
  if (absl::StrContains(set, "any") || (absl::StrContains(set, "node") && MayBeNode())) return true;
  return AnyCode([names = *ExitSet::Parse(set)](int code) {
    return !names.WordOf({.exit_code = code}).empty();
  });
}

// Whether something may have failed that `set` does not name.
bool Promises::OthersThan(const std::string& set) const {
  if (absl::StrContains(set, "any")) return false;
  if (!absl::StrContains(set, "node") && MayBeNode()) return true;
  return AnyCode([names = *ExitSet::Parse(set)](int code) {
    return names.WordOf({.exit_code = code}).empty();
  });
}

// Checks that the restart is charged, or not charged, as the failures demand.
void Promises::ChargedRightly(const JobRecord& record) {
  const std::string& free = policy_.free_on;
  if (record.restart_log.free && (free.empty() || !Named(free))) {
    Violated(absl::StrCat("a restart is not charged: ", record.cause));
  }
  if (!record.restart_log.free && !free.empty() && !OthersThan(free)) {
    Violated(absl::StrCat("a restart is charged: ", record.cause));
  }
  if (!policy_.end_on.empty() && !OthersThan(policy_.end_on)) {
    Violated(absl::StrCat("a restart follows what is in --end-on: ", record.cause));
  }
}

// Checks the number of nodes of a new round.
void Promises::Sized(int nodes, Instant now) {
  const std::string name = RoundName(decided_.round + 1);
  if (nodes < policy_.min_nodes || nodes > policy_.max_nodes ||
      nodes % policy_.node_multiple != 0) {
    Violated(absl::StrCat(name, " has ", nodes, " nodes"));
  }
  const int before = static_cast<int>(decided_.layout->by_rank.size());
  const bool early = now - forming_since_ < policy_.join_timeout;
  if (policy_.on_loss == OnLoss::kWait && nodes < before && early) {
    Violated(absl::StrCat(name, " shrinks and does not wait"));
  }
  if (policy_.on_join == OnJoin::kIgnore && largest_ > 0 && nodes > largest_) {
    Violated(absl::StrCat(name, " is larger than the first"));
  }
  largest_ = std::max(largest_, nodes);
}

// Checks a running round that ends because nodes have joined.
void Promises::Grows(const JobRecord& record, Instant now) {
  if (!absl::StrContains(record.cause, " joined: from ")) return;
  if (policy_.on_join != OnJoin::kRestart) Violated("a round ends for a node that is to wait");
  if (grew_at_ && now - *grew_at_ < policy_.grow_interval) Violated("rounds grow too often");
  grew_at_ = now;
}

void Promises::NewRound(const JobRecord& record, const RoundTable& table, Instant now) {
  const std::string name = RoundName(record.round);
  if (const std::string living = Living(); !living.empty()) {
    Violated(absl::StrCat(name, " begins while there are ", living));
  }
  if (now - forming_since_ < pause_)
    Violated(absl::StrCat(name, " begins before its pause is over"));
  Layout layout;
  layout.master_addr = record.master_addr;
  layout.master_port = record.master_port;
  layout.world_size = record.world_size;
  layout.by_rank.assign(static_cast<size_t>(record.round_nodes), -1);
  for (const MemberRecord& member : record.members) {
    if (member.told != record.round) continue;
    const SimulatedAgent& agent = *agents_[member.info.incarnation - 1];
    const Seen& seen = Of(agent);
    if (member.node_rank < 0 || member.node_rank >= record.round_nodes ||
        layout.by_rank[static_cast<size_t>(member.node_rank)] != -1) {
      return Violated(absl::StrCat(name, ": node rank ", member.node_rank, " of ", agent.Name(),
                                   " is not its own"));
    }
    layout.by_rank[static_cast<size_t>(member.node_rank)] = agent.index();
    layout.by_slot[agent.slot()] = {member.node_rank, member.first_rank, agent.index()};
    if (seen.ended || seen.left || !seen.attached) {
      Violated(absl::StrCat(name, " is assigned to ", agent.Name(), ", which is not here"));
    }
    // Skipped after a pause: a late Tick may hide a silence as long as the time since the last
    // call.
    if (now - seen.heard >= policy_.lease.lease && pauses_ == seen.pauses && !agent.local()) {
      Violated(absl::StrCat(name, " is assigned to ", agent.Name(), ", which is suspect"));
    }
  }
  const int nodes = record.round_nodes;
  Sized(nodes, now);
  Rank first = 0;
  for (size_t rank = 0; rank < layout.by_rank.size(); ++rank) {
    if (layout.by_rank[rank] < 0) {
      return Violated(absl::StrCat(name, " has no holder of node rank ", rank));
    }
    const SimulatedAgent& agent = *agents_[static_cast<size_t>(layout.by_rank[rank])];
    const Directive told = table.DirectiveFor(agent.info().node_id);
    const Assignment& a = told.assignment;
    const bool right = a.round == record.round && a.node_rank == static_cast<int>(rank) &&
                       a.num_nodes == nodes && a.first_rank == first &&
                       layout.by_slot[agent.slot()].first_rank == first &&
                       a.world_size == record.world_size && a.master_addr == record.master_addr &&
                       a.master_port == record.master_port && a.restart_count == record.restarts &&
                       a.max_restarts == policy_.max_restarts;
    if (!right) Violated(absl::StrCat(name, ": wrong assignment for ", agent.Name()));
    first += agent.info().nproc;
  }
  if (first != record.world_size) Violated(absl::StrCat(name, ": ranks are not dense"));
  if (record.master_port != Of(*agents_[static_cast<size_t>(layout.by_rank[0])]).port) {
    Violated(absl::StrCat(name, ": the master's port is not that of node rank 0"));
  }
  RankOrder(layout, now);
  decided_.layout = std::make_shared<Layout>(std::move(layout));
  decided_.held.clear();
  for (const auto& [slot, member] : decided_.layout->by_slot)
    decided_.held[slot] = member.node_rank;
}

// Nodes keep the ranks they held. Then explicit ranks count. No present node is left out without
// need.
void Promises::RankOrder(const Layout& layout, Instant now) {
  const int nodes = static_cast<int>(layout.by_rank.size());
  const auto keeps = [&](int slot) {
    const auto it = decided_.held.find(slot);
    return it != decided_.held.end() && it->second < nodes;
  };
  bool newcomers = false;
  for (const auto& [slot, member] : layout.by_slot) {
    const SimulatedAgent& agent = *agents_[static_cast<size_t>(member.agent)];
    newcomers = newcomers || !decided_.held.contains(slot);
    if (keeps(slot) && member.node_rank != decided_.held[slot]) {
      Violated(absl::StrCat(agent.Name(), " held rank ", decided_.held[slot], " and gets ",
                            member.node_rank));
    }
    const std::optional<int> wish = agent.info().node_rank;
    if (keeps(slot) || !wish || *wish >= nodes || member.node_rank == *wish) continue;
    const SimulatedAgent& holder =
        *agents_[static_cast<size_t>(layout.by_rank[static_cast<size_t>(*wish)])];
    if (!keeps(holder.slot())) {
      Violated(absl::StrCat(agent.Name(), " gets not its node rank but ", member.node_rank));
    }
  }
  int room = policy_.max_nodes - nodes;
  if (policy_.on_join == OnJoin::kIgnore && decided_.round > 0) room = 0;  // Or as large as before.
  int left_out = 0;
  for (const auto& agent : agents_) {
    const Seen& seen = Of(*agent);
    const bool here =
        seen.attached && !seen.ended && !seen.left && now - seen.heard < policy_.lease.lease;
    if (!here || agent->drained() || layout.by_slot.contains(agent->slot())) continue;
    if (room > 0 && ++left_out >= policy_.node_multiple) {
      Violated(absl::StrCat(agent->Name(), " is here and left out"));
    }
    if (decided_.held.contains(agent->slot()) && newcomers) {
      Violated(absl::StrCat(agent->Name(), " lost its place to a newcomer"));
    }
  }
}

// Checks that all members have said that they can run the round.
void Promises::Runs(const JobRecord& record) {
  if (policy_.preflight == Preflight::kOff || decided_.layout->by_rank.size() < 2) return;
  for (const int index : decided_.layout->by_rank) {
    const SimulatedAgent& agent = *agents_[static_cast<size_t>(index)];
    const Seen& seen = Of(agent);
    if (seen.prepared != record.round || !seen.fit) {
      Violated(absl::StrCat(RoundName(record.round), " runs, and ", agent.Name(),
                            " did not say that it can"));
    }
  }
}

void Promises::Over(const JobRecord& record, Instant now) {
  const Outcome& outcome = record.outcome;
  const bool ran = decided_.state == JobState::kRunning;
  if (outcome.restart_count != record.restarts) Violated("the outcome counts other restarts");
  if (outcome.exit_code == 0) {
    for (const int index : decided_.layout->by_rank) {
      const size_t i = static_cast<size_t>(index);
      if (i >= succeeded_.size() || succeeded_[i] != record.round) {
        Violated(absl::StrCat("the job succeeded and ", agents_[i]->Name(), " did not"));
      }
    }
    if (!ran) Violated("the job succeeded in a round that did not run");
    return;
  }
  if (outcome.reason.empty()) Violated("the job failed without a reason");
  if (outcome.exit_code == kExitJoinTimeout) {
    if (now - forming_since_ < policy_.join_timeout && pauses_ == 0) Violated("gave up too early");
  } else if (!agents_[0]->local()) {
    const bool unfit = outcome.exit_code == kExitPreflight;
    const bool fault = unfit || fault_ || failed_round_ == record.round;
    if (ran == unfit || !fault)
      Violated(absl::StrCat("the job ended for no failure: ", outcome.reason));
    const bool named = (!policy_.end_on.empty() && Named(policy_.end_on)) ||
                       (!policy_.restart_on.empty() && OthersThan(policy_.restart_on));
    const size_t charged = record.restart_log.charged.size();
    const bool by_loss =
        policy_.on_loss == OnLoss::kFail && absl::StrContains(outcome.reason, "--on-loss fail");
    const bool set_up = unfit && (policy_.on_loss == OnLoss::kFail || !policy_.end_on.empty() ||
                                  !policy_.restart_on.empty());
    if (charged < static_cast<size_t>(policy_.max_restarts) && !named && !by_loss && !set_up) {
      Violated(absl::StrCat("the job ended with restarts left: ", outcome.reason));
    }
  }
  if (outcome.total_failures > failures_[record.round]) {
    Violated(absl::StrCat(outcome.total_failures, " failures are told, ", failures_[record.round],
                          " there were"));
  }
}

// The rendezvous was restored: it knows only what was kept.
void Promises::Restored(const JobRecord& record, const RoundTable& table, Instant now) {
  ++disturbances_;
  decided_ = kept_;
  for (Seen& seen : seen_) {
    seen.attached = seen.ended = seen.left = false;
    seen.asked = seen.asked_last = {};
    seen.heard = std::max(seen.heard, now);
    seen.pauses = pauses_;
    seen.paused = paused_;
    seen.prepared = 0;
    if (decided_.state != JobState::kOver) seen.succeeded = 0;
  }
  for (const Incarnation incarnation : record.given_up) {
    Of(*agents_[incarnation - 1]).ended = true;
  }
  CallOver();
  failed_round_ = record.failures.empty() ? 0 : record.round;
  grew_at_.reset();  // The record keeps neither this nor the size of the largest round.
  largest_ = record.round_nodes;
  state_ = table.state();
  forming_since_ = now;
  pause_ = record.restart_log.pause;
  if (table.round() != decided_.round) Violated("a restored rendezvous knows another round");
}

void Promises::Told(const SimulatedAgent& agent, const Directive& directive) {
  using Kind = Directive::Kind;
  const auto untold = [&](absl::string_view what) {
    Violated(absl::StrCat(agent.Name(), " is told to ", what, " ", RoundName(directive.round),
                          ", which was not kept"));
  };
  switch (directive.kind) {
    case Kind::kWait:
      if (directive.reason.empty())
        Violated(absl::StrCat(agent.Name(), " waits and is not told why"));
      return;
    case Kind::kPrepare:
      if (directive.round != kept_.round || kept_.state != JobState::kPreflight) untold("prepare");
      if (!IsMember(agent, kept_)) untold("prepare, as no member,");
      return;
    case Kind::kRun:
      if (directive.round != kept_.round || kept_.state != JobState::kRunning) untold("run");
      if (!IsMember(agent, kept_)) untold("run, as no member,");
      return;
    case Kind::kStop:
      if (directive.round != kept_.round || kept_.state != JobState::kStopping) untold("stop");
      return;
    case Kind::kFinish:
      if (kept_.state != JobState::kOver && !Of(agent).left && !agent.drained()) untold("finish");
      return;
  }
}

}  // namespace hlaunch
