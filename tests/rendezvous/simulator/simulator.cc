// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/simulator/simulator.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/table/round_table.h"
#include "rendezvous/voter/voter.h"
#include "tests/rendezvous/simulator/event.h"
#include "tests/rendezvous/simulator/promises.h"
#include "tests/rendezvous/simulator/simulated_agent.h"
#include "tests/rendezvous/simulator/words.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kEver = std::chrono::hours(24);
// The values of EtcdKeeper and JobLeader.
constexpr Duration kServiceLease = seconds(5);
constexpr Duration kOwnLease = seconds(4);  // Shorter, since clocks may drift.
constexpr Duration kLook = milliseconds(500);
constexpr Duration kWritePatience = seconds(5);
constexpr Duration kWriteAgain = seconds(1);
constexpr int kFlaps = 10;

// One direction of an agent's link. A message sent during a cut arrives after the cut.
struct Way {
  Instant cut_until;
  Instant last;       // Arrival of the last message: a stream keeps its order.
  bool lost = false;  // The stream delivers nothing more.
};

struct Link {
  Way up, down;
  int service = 0;  // The service at the other end of the stream.
  int tries = 0;    // Joins so far; they go to the services in turn.
  Duration delay{};
  uint32_t joined = 0;  // The last stream that the rendezvous accepted.
};

// The rendezvous's side of a node's stream, as in JobRendezvous.
struct Session {
  int agent = -1;
  uint32_t stream = 0;
  bool news = false;
};

// A write of the record on its way to the place, and its result.
struct WriteOfRecord {
  JobRecord record;
  Promises::Decided decided;
  uint64_t durable = 0;  // Version of the table.
  int service = 0;
  int term = 0;
  uint64_t expected = 0;
  enum class Fate { kDone, kRefused, kUnknown } fate = Fate::kUnknown;
  uint64_t version = 0;  // The new version, if kDone.
  bool again = false;    // An earlier write got no answer; this one may replace it.
};

// One rendezvous.
struct Service {
  std::unique_ptr<RoundTable> table;  // Null while the service is down or stands by.
  uint64_t committed = 0;             // Durable version of the table that was kept.
  uint64_t recorded = 0;              // Durable version that the promises know.
  uint32_t life = 1;
  Instant paused_until;
  std::vector<Session> sessions;  // By slot.
  std::optional<Instant> tick_at;
  uint32_t tick_token = 0;
  // The rest is used where several services share a place.
  bool up = true;
  int term = 0;
  Instant leads_until;
  Instant cut_until;     // Until then it cannot reach the place.
  uint64_t version = 0;  // The version of the place's record that it knows.
  bool writing = false;  // A write is under way or will be retried.
  bool unsure = false;   // It does not know whether its last write was done.
  Instant unkept_since;
  std::vector<RoundTable::Ended> ended;  // Told to the agents once all is kept.
  // The rest is used with voters. A service is what the agent in its slot hosts.
  std::optional<Voter> voter;  // Unset while no agent is there.
  int agent = -1;
  bool dark = false;  // Its host has lost its power.
  uint32_t voter_tick = 0;
  uint64_t proposed = 0;  // The version that its last write gets.
  uint32_t write = 0;     // That write.
  bool over = false;      // It has kept the end of the job, so it needs no lead any more.
  struct Sign {
    Incarnation to = 0;
    Term term = 0;
    uint64_t beat = 0;
    Instant at;
  };
  std::vector<Sign> signs;  // Of life, of the voter; see JobVoter.
  Instant taken_at;
  std::map<Incarnation, std::pair<Term, uint64_t>> taken;
  std::optional<std::pair<Term, Incarnation>> told_leader;
};

// The place that keeps the record, with EtcdKeeper's rules.
struct Place {
  std::optional<JobRecord> record;
  Promises::Decided decided;
  uint64_t version = 0;
  int term = 0;
  Instant lease_until;  // By the place's clock.
  Instant down_until;
};

class Simulator final : public AgentSurroundings {
 public:
  explicit Simulator(const Simulation& simulation)
      : simulation_(simulation),
        random_(simulation.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(simulation.nodes)),
        rules_(Rules()),
        promises_(rules_.policy, agents_),
        services_(static_cast<size_t>(simulation.voters ? simulation.nodes : simulation.services)),
        at_(&services_[0]) {}

  SimulationResult Run();

  // AgentSurroundings.
  Instant Now() const override { return now_; }
  int Below(int n) override {
    return n <= 1 ? 0 : static_cast<int>(random_() % static_cast<uint64_t>(n));
  }
  void Later(const SimulatedAgent& agent, EventKind kind, Duration delay, uint32_t token) override {
    queue_.Push({now_ + delay, 0, kind, agent.index(), token, nullptr});
  }
  void Send(SimulatedAgent& agent, std::shared_ptr<SimulatedMessage> message) override;
  void Closed(SimulatedAgent& agent, uint32_t stream) override;
  bool MasterAnswers(const Assignment& assignment) override;
  std::pair<Duration, bool> WorkersFate(const SimulatedAgent& agent, Round round) override;
  void Started(SimulatedAgent& agent, const Assignment& assignment) override;
  void Succeeded(SimulatedAgent& agent) override { promises_.Succeeded(agent); }
  void Failed(SimulatedAgent& agent) override;
  void Gone(SimulatedAgent& agent) override { promises_.Gone(agent, now_); }
  void Exited(SimulatedAgent& agent) override;
  Instant TakenElsewhere(const SimulatedAgent& agent) override;

 private:
  bool OneIn(int n) { return Below(n) == 0; }
  Duration UpTo(Duration limit) {
    return std::chrono::duration_cast<Duration>(
        milliseconds(Below(static_cast<int>(limit / milliseconds(1)) + 1)));
  }
  void Count(Fault fault) { ++result_.faults[static_cast<size_t>(fault)]; }
  template <typename... Text>
  void Trace(const Text&... text) {
    if (!simulation_.trace) return;
    simulation_.trace(absl::StrCat(
        absl::StrFormat("%10.3f s  ", std::chrono::duration<double>(now_ - begin_).count()),
        text...));
  }

  // The world.
  JobRules Rules();
  JobPolicy PolicyOf(const StandstillScene& scene) const;
  void DrawRestarts(JobPolicy& policy);
  void DrawSizes(JobPolicy& policy);
  void Populate();
  void BeSteady();
  void BeginServices();
  void Arrive(int who);  // A slot, or -1 - i for the entry i of reborn_.
  void NewAgent(int slot, const std::string& host, bool local);
  void Step(const Event& event);
  void BeCalm();
  bool Done() const;

  // The network.
  Link& LinkOf(const SimulatedAgent& agent) { return links_[static_cast<size_t>(agent.index())]; }
  Instant Arrival(const Link& link, Way& way);
  Instant CutUntil(const Link& link, const Way& way) const;
  void SendDown(int agent, std::shared_ptr<SimulatedMessage> message);
  void Break(SimulatedAgent& agent, bool seen_here, bool seen_there);

  // The rendezvous.
  void AtRendezvous(const Event& event);
  void Arrives(const Event& event);
  void Joins(SimulatedAgent& agent, const SimulatedMessage& message);
  void Updates(SimulatedAgent& agent, const SimulatedMessage& message);
  bool Counts(const SimulatedAgent& agent, const SimulatedMessage& message);
  void Answer(const SimulatedAgent& agent, const SimulatedMessage& message);
  void End(int agent, uint32_t stream, const absl::Status& status);
  void Notices(int agent, uint32_t stream);
  void Reported(const Event& event);
  void Tick(uint32_t token);
  void HandsOver(const Event& event);
  static int SlotOf(const std::string& node_id) { return std::stoi(node_id.substr(2)); }
  void AfterCall();
  void Tell(const std::vector<RoundTable::Ended>& ended, const std::vector<std::string>& changed);
  void Probe(const std::vector<std::string>& asked);
  bool Keep();
  std::optional<Instant> NextTick() const;
  void ArmTick();
  void Crash(Duration down);
  void Forget();
  void Open();
  void Restore();

  // Several services, one place.
  bool shared() const { return services_.size() > 1; }
  int Index() const { return static_cast<int>(at_ - services_.data()); }
  Service& Leader();
  void Looks(uint32_t token);
  void Renews(uint32_t token);
  void Lose(const char* why);
  bool KeepElsewhere();
  void NotePause();
  void Write();
  void Written(const Event& event);
  void WriteTold(uint32_t number);
  void TellWhatWaited();
  void Stand(Service& service);
  void StandBeforeWord(Link& link);
  void InjectServiceFault();

  // Voters.
  bool voters() const { return simulation_.voters; }
  VoterRule RuleOfVoters() const;
  void Host(SimulatedAgent& agent);
  void Dies(const SimulatedAgent& agent, bool dark = false);
  void ToVoter(Service& service, const VoterEvent& event);
  void TakeSigns(Service& service, const VoterStep& step);
  void NoteTaken(const VoterMessage& append);
  void TellLeader(Service& service, const VoterEvent& event, const VoterStep& step);
  void Deliver(Service& from, VoterMessage message);
  void TakeOver(Term term);
  void Propose(uint32_t number);
  void LookAtNodes();
  void NameCandidates();
  Service* HostOf(Incarnation incarnation);

  // Faults.
  void Inject();
  void Strike(Fault fault, SimulatedAgent& agent);
  void Kill(SimulatedAgent& agent, bool heard);
  void Fence(SimulatedAgent& agent, uint32_t token);
  void Again(const SimulatedAgent& agent, bool elsewhere);
  void Pause(SimulatedAgent& agent, Duration duration, StandsStill what);
  void PauseRendezvous(Duration duration);
  void StandStill();
  void StandStillTwice(SimulatedAgent& agent);
  void Flap();
  void LosePower(SimulatedAgent& agent);
  void Cut(SimulatedAgent& agent, bool up, bool down, Duration duration);

  const Simulation& simulation_;
  std::mt19937_64 random_;
  bool keeps_ = true;  // The rendezvous keeps records, so it may restart.
  bool explicit_ranks_ = false;
  bool has_local_ = false;
  bool calm_ = false;
  Instant deadline_ = Instant::max();  // The job must be over by then, once faults have ceased.
  Duration between_faults_{};
  int long_rounds_ = 1;  // One in this many rounds ends by itself.
  int crash_in_ = 0;  // One in this many records is lost; as many are kept but not told. 0: none.
  bool repairs_ = true;  // Agents that exit are started again.
  std::array<bool, kFaults> enabled_{};
  int other_hosts_ = 0;  // Hosts made for nodes that came back elsewhere.
  int idle_ = 0;         // Consecutive faults while no agent lived.
  int slots_ = 0;        // Slots given to nodes so far.
  const Instant begin_ = Instant{} + std::chrono::hours(1);
  Instant now_ = begin_;
  EventQueue queue_;
  const JobRules rules_;
  Promises::Agents agents_;
  std::vector<Link> links_;
  std::vector<std::pair<int, std::string>> reborn_;  // Slot and host of each agent started again.
  int alive_ = 0;
  Promises promises_;
  SimulationResult result_;
  Round fate_round_ = 0;
  Duration fate_{}, fate_spread_{};

  std::vector<Service> services_;
  Service* at_;  // The service that the current event concerns.
  Place place_;
  std::vector<WriteOfRecord> writes_;
  std::array<bool, kServiceFaults> service_faults_{};
  Duration between_service_faults_{};
  bool armed_ = false;  // The moment of a StandstillScene has come.
  int flaps_ = 0;       // How often a link went down.
  int flapping_ = -1;   // That of this agent.
  int twice_ = -1;      // The agent that stands still once more.
  JobState traced_ = JobState::kForming;
};

// ---- The world.

JobRules Simulator::Rules() {
  JobRules rules;
  rules.job_id = "job";
  JobPolicy& policy = rules.policy;
  policy.max_nodes = OneIn(3) ? std::max(1, simulation_.nodes - Below(4)) : simulation_.nodes;
  const int fewer = simulation_.nodes > 100 ? policy.max_nodes / 5 : policy.max_nodes;
  const bool fixed = simulation_.nodes < 1000 && OneIn(2);
  policy.min_nodes = fixed ? policy.max_nodes : policy.max_nodes - Below(fewer);
  policy.spares = simulation_.nodes - policy.max_nodes;
  policy.max_restarts = OneIn(4) ? Below(3) : 5 + Below(60);
  policy.join_timeout = seconds(60 + Below(240));
  policy.last_call = seconds(1 + Below(OneIn(2) ? 30 : 3));
  policy.preflight = OneIn(4) ? Preflight::kOff : Preflight::kQuick;
  DrawRestarts(policy);
  DrawSizes(policy);
  if (simulation_.standstill) policy = PolicyOf(*simulation_.standstill);
  return rules;
}

JobPolicy Simulator::PolicyOf(const StandstillScene& scene) const {
  JobPolicy policy;
  policy.min_nodes = policy.max_nodes = simulation_.nodes;
  policy.max_restarts = 5;
  policy.lease.loss_limit = scene.loss_limit;
  policy.lease.lease = std::min<Duration>(policy.lease.lease, scene.loss_limit / 3);
  policy.lease.margin = policy.lease.lease + seconds(5);
  return policy;
}

// The exit codes of failing workers are 1, 2 and 3.
void Simulator::DrawRestarts(JobPolicy& policy) {
  if (OneIn(3)) policy.restart_window = seconds(30 << Below(6));
  if (OneIn(3)) policy.restart_pause = milliseconds(500 << Below(6));
  constexpr const char* kFree[] = {"2", "node", "2,3", "any"};
  if (OneIn(3)) policy.free_on = kFree[Below(4)];
  if (OneIn(8)) policy.end_on = "3";
  if (OneIn(8)) policy.restart_on = OneIn(2) ? "1,node" : "1-2,node";
}

// Draws when rounds grow and what a loss means, if this history is elastic.
void Simulator::DrawSizes(JobPolicy& policy) {
  if (OneIn(2)) return;
  constexpr OnJoin kJoins[] = {OnJoin::kRestart, OnJoin::kNextRound, OnJoin::kIgnore};
  policy.on_join = kJoins[OneIn(2) ? 0 : Below(3)];
  if (OneIn(3)) policy.on_loss = OneIn(4) ? OnLoss::kFail : OnLoss::kWait;
  if (OneIn(2)) policy.grow_interval = seconds(5 << Below(6));
  if (OneIn(2)) policy.boundary_limit = seconds(1 << Below(8));
  if (policy.min_nodes < 2 || OneIn(2)) return;
  policy.node_multiple = 2;
  policy.min_nodes -= policy.min_nodes % 2;
  policy.max_nodes -= policy.max_nodes % 2;
  policy.spares = simulation_.nodes - policy.max_nodes;
}

void Simulator::Populate() {
  keeps_ = !OneIn(5);
  has_local_ = !keeps_ && OneIn(2);
  explicit_ranks_ = OneIn(3);
  // A large job has more faults, and only a short time of it can be simulated.
  between_faults_ = milliseconds(500 << Below(7)) * 200 / std::max(simulation_.nodes, 200);
  long_rounds_ = OneIn(5) ? 2 : 200;
  crash_in_ = OneIn(2) ? 0 : 5 << Below(4);
  repairs_ = simulation_.nodes > 100 || !OneIn(5);
  // A history has only some of the faults, so that each fault occurs with and without each other.
  for (size_t fault = 0; fault < kFaults; ++fault) enabled_[fault] = OneIn(3);
  if (simulation_.standstill) BeSteady();
  for (int i = 0; i < simulation_.nodes; ++i) {
    const bool late = i > 0 && OneIn(20);
    const Duration at = i == 0 && has_local_ ? Duration::zero() : UpTo(seconds(late ? 30 : 4));
    queue_.Push({now_ + at, 0, EventKind::kArrival, i, 0, nullptr});
  }
  slots_ = simulation_.nodes;
  const bool at_once = simulation_.standstill && simulation_.standstill->after;
  queue_.Push({now_ + (at_once ? Duration::zero() : UpTo(seconds(20))), 0, EventKind::kFault, -1, 0,
               nullptr});
  if (voters()) return;
  if (shared()) return BeginServices();
  at_->table = std::make_unique<RoundTable>(rules_);
}

// Only the scene's one fault happens.
void Simulator::BeSteady() {
  keeps_ = repairs_ = true;
  has_local_ = explicit_ranks_ = false;
  long_rounds_ = std::numeric_limits<int>::max();
  crash_in_ = 0;
  enabled_.fill(false);
}

void Simulator::BeginServices() {
  keeps_ = true;
  has_local_ = false;
  crash_in_ = 0;
  between_service_faults_ = milliseconds(2000 << Below(6));
  for (bool& enabled : service_faults_) enabled = OneIn(2);
  for (int i = 0; i < simulation_.services; ++i) {
    queue_.Push({now_ + UpTo(seconds(3)), 0, EventKind::kLooks, -1, 1, nullptr, i});
  }
  queue_.Push({now_ + UpTo(seconds(20)), 0, EventKind::kServiceFault, -1, 0, nullptr});
}

void Simulator::Arrive(int who) {
  if (who >= 0) return NewAgent(who, absl::StrCat("node", who), who == 0 && has_local_);
  const auto [slot, host] = reborn_[static_cast<size_t>(-who - 1)];
  NewAgent(slot, host, false);
}

void Simulator::NewAgent(int slot, const std::string& host, bool local) {
  NodeInfo info;
  info.job_id = rules_.job_id;
  info.node_id = absl::StrCat("id", slot);
  info.incarnation = agents_.size() + 1;
  info.host = host;
  info.pid = static_cast<int>(100 + agents_.size());
  info.started_ms = (now_ - begin_) / milliseconds(1);
  info.nproc = 1 + Below(3);
  info.policy = rules_.policy;
  info.address = absl::StrCat("10.", slot / 250, ".", slot % 250, ".", host[0] == 'n' ? 1 : 2);
  info.route_address = "10.0.0.100";
  const int places = rules_.policy.max_nodes + rules_.policy.spares;
  if (explicit_ranks_ && slot < places) info.node_rank = slot;
  agents_.push_back(std::make_unique<SimulatedAgent>(static_cast<int>(agents_.size()), slot,
                                                     std::move(info), local, *this));
  links_.emplace_back();
  const bool slow = !voters() && OneIn(20);
  links_.back().delay = milliseconds(slow ? 50 + Below(400) : 1 + Below(5));
  SimulatedAgent& agent = *agents_.back();
  agent.SetSlowStop(milliseconds(OneIn(20) ? Below(30000) : Below(1000)));
  const bool steady = calm_ || simulation_.standstill.has_value();
  if (!steady && slot > 0 && enabled_[static_cast<size_t>(Fault::kUnfit)] &&
      OneIn(50 + simulation_.nodes)) {
    agent.SetUnfit();
    Count(Fault::kUnfit);
  }
  // Some agents measure themselves as bad, always or sometimes. This is drawn from the seed and the
  // agent's number, not from random_, so that the rest of the history stays the same.
  const uint64_t draw = (simulation_.seed + agents_.size()) * 0x9E3779B97F4A7C15 >> 40;
  if (!steady && draw % (10 + static_cast<uint64_t>(simulation_.nodes)) == 0) {
    agent.SetBad(draw % 2 == 0 ? 1 : 3);
  }
  // Some agents say, from one of the first rounds on, that their hosts go down.
  const uint64_t gone = (simulation_.seed + agents_.size()) * 0xD1B54A32D192ED03 >> 40;
  if (!steady && gone % (8 + static_cast<uint64_t>(simulation_.nodes)) == 0) {
    agent.SetGoneFrom(static_cast<Round>(1 + gone / 1024 % 4));
  }
  ++alive_;
  ++result_.agents;
  for (Service& service : services_) {
    if (service.sessions.size() <= static_cast<size_t>(slot)) {
      service.sessions.resize(static_cast<size_t>(slot) + 1);
    }
  }
  Trace(agent.Name(), " starts as ", agent.info().node_id);
  if (voters()) Host(agent);
  agent.Start();
}

std::pair<Duration, bool> Simulator::WorkersFate(const SimulatedAgent& /*agent*/, Round round) {
  if (round != fate_round_) {
    fate_round_ = round;
    fate_spread_ = milliseconds(OneIn(2) ? 200 : 20000);
    fate_ = calm_ || OneIn(long_rounds_) ? seconds(1 + Below(20)) : kEver;
  }
  return {(calm_ ? Duration(seconds(5)) : fate_) + UpTo(fate_spread_), false};
}

void Simulator::Started(SimulatedAgent& agent, const Assignment& assignment) {
  Trace(agent.Name(), " starts workers of round ", assignment.round, " as node rank ",
        assignment.node_rank);
  promises_.Started(agent, assignment);
}

void Simulator::Failed(SimulatedAgent& agent) {
  Trace("a worker of ", agent.Name(), " fails");
  promises_.Failed(agent.says().round);
}

void Simulator::Exited(SimulatedAgent& agent) {
  --alive_;
  Trace(agent.Name(), " exits: ",
        agent.outcome() ? absl::StrCat("the job ended with ", agent.outcome()->exit_code)
        : agent.end()   ? agent.end()->ToString()
                        : "nothing was decided");
  promises_.Exited(agent);
  promises_.Died(agent, now_, now_ < at_->paused_until);
  if (voters()) Dies(agent);
  const bool again =
      repairs_ && (!calm_ || simulation_.standstill) && !agent.outcome() && !agent.local();
  if (again && (simulation_.standstill || !OneIn(10))) Again(agent, OneIn(3));
}

bool Simulator::MasterAnswers(const Assignment& assignment) {
  const int master = promises_.Master(assignment.round);
  if (master < 0) return false;
  const SimulatedAgent& agent = *agents_[static_cast<size_t>(master)];
  const Link& link = links_[static_cast<size_t>(master)];
  return agent.alive() && agent.paused_until() <= now_ && link.up.cut_until <= now_ &&
         link.down.cut_until <= now_;
}

bool Simulator::Done() const {
  return alive_ == 0 && at_->table != nullptr &&
         (at_->table->state() == JobState::kOver || at_->table->round() == 0);
}

void Simulator::BeCalm() {
  calm_ = true;
  if (shared()) at_ = &Leader();
  for (Service& service : services_) service.cut_until = std::min(service.cut_until, now_);
  place_.down_until = std::min(place_.down_until, now_);
  deadline_ = now_ + 2 * (rules_.policy.join_timeout + kLongestPause) + seconds(300);
  Trace("faults cease; ",
        at_->table == nullptr ? "the rendezvous is down" : at_->table->Explain(now_));
  for (Link& link : links_) {
    link.up.cut_until = std::min(link.up.cut_until, now_);
    link.down.cut_until = std::min(link.down.cut_until, now_);
  }
  for (const auto& agent : agents_) {
    agent->SetFit();
    agent->EndWorkers(seconds(5), false);
  }
}

SimulationResult Simulator::Run() {
  Populate();
  const std::string* violation = &promises_.violation();
  while (violation->empty() && !queue_.empty() && now_ < deadline_) {
    if (++result_.steps >= simulation_.steps && !calm_) BeCalm();
    const Event event = queue_.Pop();
    now_ = std::max(now_, event.at);
    Step(event);
    if (shared()) at_ = &Leader();
    if (alive_ == 0 && (calm_ || result_.steps > 1000) && Done()) break;
  }
  if (violation->empty() && !Done()) {
    promises_.Violated(
        absl::StrCat("waits for ever: ", alive_, " agents live; ",
                     at_->table == nullptr ? "no rendezvous" : at_->table->Explain(now_)));
  }
  if (!violation->empty()) {
    Trace("VIOLATION: ", *violation);
    result_.violation = absl::StrCat(
        *violation,
        absl::StrFormat(" (at %.3f s)", std::chrono::duration<double>(now_ - begin_).count()));
  }
  if (at_->table != nullptr) {
    const JobRecord record = at_->table->Record();
    result_.rounds = static_cast<uint64_t>(record.round);
    result_.job_restarts = static_cast<uint64_t>(record.restarts);
    if (record.state == JobState::kOver) result_.outcome = record.outcome.exit_code;
  }
  return std::move(result_);
}

void Simulator::Step(const Event& event) {
  switch (event.kind) {
    case EventKind::kFault:
      return Inject();
    case EventKind::kArrival:
      return Arrive(event.agent);
    case EventKind::kSwept:
      Trace("the keeper of ", agents_[static_cast<size_t>(event.agent)]->Name(), " has swept");
      return agents_[static_cast<size_t>(event.agent)]->SweptByKeeper();
    case EventKind::kFence:
      return Fence(*agents_[static_cast<size_t>(event.agent)], event.token);
    case EventKind::kArrives:
    case EventKind::kHandsOver:
    case EventKind::kNotices:
    case EventKind::kReported:
    case EventKind::kTick:
    case EventKind::kResumes:
    case EventKind::kOpens:
    case EventKind::kLooks:
    case EventKind::kRenews:
    case EventKind::kWritten:
    case EventKind::kWriteTold:
    case EventKind::kKeepsAgain:
    case EventKind::kVoterHears:
    case EventKind::kVoterTicks:
    case EventKind::kLooksAtNodes:
      return AtRendezvous(event);
    case EventKind::kServiceFault:
      return InjectServiceFault();
    default:
      break;
  }
  SimulatedAgent& agent = *agents_[static_cast<size_t>(event.agent)];
  if (event.kind != EventKind::kWakes && now_ < agent.paused_until() &&
      (event.kind != EventKind::kExits || now_ < agent.frozen_until())) {
    Event deferred = event;
    deferred.at = agent.paused_until();
    return queue_.Push(std::move(deferred));
  }
  agent.Handle(event);
}

// ---- The network.

Instant Simulator::Arrival(const Link& link, Way& way) {
  Duration takes = link.delay;
  if (!calm_ && !voters() && OneIn(200)) takes += UpTo(seconds(3));  // TCP sends it again.
  const int agent = static_cast<int>(&link - links_.data());
  if (voters() && services_[static_cast<size_t>(link.service)].agent == agent) {
    takes = milliseconds(1);  // It is in the same process.
  }
  way.last = std::max({way.last, now_ + takes, CutUntil(link, way) + takes});
  return way.last;
}

// The link of the service's own node may be cut, too; within a node there is none.
Instant Simulator::CutUntil(const Link& link, const Way& way) const {
  const int host = services_[static_cast<size_t>(link.service)].agent;
  if (!voters() || host < 0) return way.cut_until;
  const Link& there = links_[static_cast<size_t>(host)];
  if (&there == &link) return {};
  return std::max(way.cut_until, &way == &link.up ? there.down.cut_until : there.up.cut_until);
}

void Simulator::Send(SimulatedAgent& agent, std::shared_ptr<SimulatedMessage> message) {
  Link& link = LinkOf(agent);
  if (message->kind == SimulatedMessage::Kind::kJoin) {
    link.up = {link.up.cut_until, {}, false};
    link.down = {link.down.cut_until, {}, false};
    if (shared()) link.service = link.tries++ % static_cast<int>(services_.size());
  }
  const uint32_t life = services_[static_cast<size_t>(link.service)].life;
  if (agent.local()) {
    return queue_.Push({now_, 0, EventKind::kArrives, agent.index(), life, std::move(message)});
  }
  if (link.up.lost) return;
  const Instant at = Arrival(link, link.up);
  if (!calm_ && OneIn(500) && message->kind == SimulatedMessage::Kind::kUpdate) {
    Count(Fault::kDoubled);
    queue_.Push({at + UpTo(seconds(8)), 0, EventKind::kArrives, agent.index(), life, message,
                 link.service});
  }
  queue_.Push({at, 0, EventKind::kArrives, agent.index(), life, std::move(message), link.service});
}

void Simulator::SendDown(int index, std::shared_ptr<SimulatedMessage> message) {
  Link& link = links_[static_cast<size_t>(index)];
  message->sent = now_;
  Instant at = now_;
  if (!agents_[static_cast<size_t>(index)]->local()) {
    if (link.down.lost) return;
    // The service does not stand still before a probe: a holder whose probe is late may lose its
    // place, which is known and breaks no promise.
    if (shared() && message->kind != SimulatedMessage::Kind::kProbe) StandBeforeWord(link);
    at = Arrival(link, link.down);
  }
  queue_.Push({at, 0, EventKind::kReaches, index, 0, std::move(message)});
}

// The agent has closed its stream; its earlier messages may still arrive.
void Simulator::Closed(SimulatedAgent& agent, uint32_t stream) {
  Link& link = LinkOf(agent);
  if (link.up.lost) return;
  queue_.Push({Arrival(link, link.up), 0, EventKind::kNotices, agent.index(), stream, nullptr,
               link.service});
}

void Simulator::Break(SimulatedAgent& agent, bool seen_here, bool seen_there) {
  Link& link = LinkOf(agent);
  if (agent.stream() == 0) return;
  link.up.lost = link.down.lost = true;
  if (seen_there) {
    queue_.Push({now_ + link.delay, 0, EventKind::kBreaks, agent.index(), agent.stream(), nullptr});
  }
  if (seen_here) {
    queue_.Push({now_ + link.delay, 0, EventKind::kNotices, agent.index(), agent.stream(), nullptr,
                 link.service});
  }
}

// ---- The rendezvous.

void Simulator::AtRendezvous(const Event& event) {
  at_ = &services_[static_cast<size_t>(event.service)];
  if (event.kind == EventKind::kOpens) return Open();
  if (event.kind == EventKind::kWritten) return Written(event);
  const bool of_voter =
      event.kind == EventKind::kVoterHears || event.kind == EventKind::kVoterTicks;
  if (of_voter && !at_->voter) return;
  if (now_ < at_->paused_until && event.kind != EventKind::kResumes) {
    Event deferred = event;
    deferred.at = at_->paused_until;
    return queue_.Push(std::move(deferred));
  }
  if (shared() && at_->table != nullptr && now_ >= at_->leads_until && !(voters() && at_->over)) {
    Lose("its lease has run out");
  }
  switch (event.kind) {
    case EventKind::kLooks:
      return Looks(event.token);
    case EventKind::kRenews:
      return Renews(event.token);
    case EventKind::kWriteTold:
      return WriteTold(event.token);
    case EventKind::kKeepsAgain:
      if (event.token == at_->life && at_->table != nullptr) Write();
      return;
    case EventKind::kVoterHears:
      NoteTaken(*event.letter);
      return ToVoter(*at_, VoterHeard{*event.letter});
    case EventKind::kVoterTicks:
      if (event.token == at_->voter_tick) ToVoter(*at_, VoterTimePassed{});
      return;
    case EventKind::kLooksAtNodes:
      if (event.token == at_->life) LookAtNodes();
      return;
    case EventKind::kArrives:
      return Arrives(event);
    case EventKind::kHandsOver:
      return HandsOver(event);
    case EventKind::kNotices:
      return Notices(event.agent, event.token);
    case EventKind::kReported:
      return Reported(event);
    case EventKind::kTick:
      return Tick(event.token);
    default:
      return;
  }
}

void Simulator::Arrives(const Event& event) {
  SimulatedAgent& agent = *agents_[static_cast<size_t>(event.agent)];
  const SimulatedMessage& message = *event.message;
  // The message belongs to an earlier life of the service: its stream is gone.
  Link& link = LinkOf(agent);
  if (at_->table == nullptr || event.token != at_->life) {
    if (at_->dark) return;
    if (message.stream != agent.stream()) return;
    // A voter that stands by knows who leads.
    Service* const leads = at_->voter ? HostOf(at_->voter->leader()) : nullptr;
    if (leads != nullptr && leads->table != nullptr) {
      link.tries = static_cast<int>(leads - services_.data());
    }
    return Break(agent, false, true);
  }
  if (message.kind == SimulatedMessage::Kind::kJoin) return Joins(agent, message);
  if (message.stream > link.joined) return;  // The stream's join was refused.
  if (message.stream < link.joined) Count(Fault::kLate);
  if (message.kind == SimulatedMessage::Kind::kUpdate) return Updates(agent, message);
  if (!Counts(agent, message)) return AfterCall();
  promises_.Heard(agent, now_);
  at_->table->Heard(agent.info().node_id, agent.info().incarnation, now_);
  // An agent that was given up gets no answer here: it is told once that is kept. Without a shared
  // place it is told at once.
  const bool holds = at_->table->Holds(agent.info().node_id, agent.info().incarnation);
  if (holds || !shared()) Answer(agent, message);
  AfterCall();
}

bool Simulator::Counts(const SimulatedAgent& agent, const SimulatedMessage& message) {
  return agent.local() || at_->table->Counts(agent.info().node_id, agent.info().incarnation,
                                             now_ - message.made_after, now_);
}

void Simulator::Joins(SimulatedAgent& agent, const SimulatedMessage& message) {
  Link& link = LinkOf(agent);
  if (message.stream < link.joined) Count(Fault::kLate);
  promises_.Joins(agent);
  const absl::Status status = at_->table->Join(agent.info(), message.update, agent.local(), now_);
  Trace(agent.Name(), " joins (", Words(message.update), "): ", status.ToString());
  if (status.ok()) {
    promises_.Joined(agent, message.update, now_);
    link.joined = std::max(link.joined, message.stream);
    Session& session = at_->sessions[static_cast<size_t>(agent.slot())];
    const Session before = std::exchange(session, {agent.index(), message.stream, true});
    AfterCall();
    if (at_->table == nullptr) return;
    if (before.agent >= 0 && (before.agent != agent.index() || before.stream != message.stream)) {
      End(before.agent, before.stream, absl::UnavailableError("another connection"));
    }
    if (session.agent != agent.index()) return;  // It was given up because of this update.
    Answer(agent, message);
    queue_.Push({now_, 0, EventKind::kHandsOver, agent.slot(), at_->life, nullptr, Index()});
  } else {
    promises_.Refused(agent, message.update, status, *at_->table, now_);
    AfterCall();
    if (at_->table != nullptr) End(agent.index(), message.stream, status);
  }
}

void Simulator::Updates(SimulatedAgent& agent, const SimulatedMessage& message) {
  const bool counts = Counts(agent, message);
  const absl::Status status = at_->table->Update(agent.info().node_id, agent.info().incarnation,
                                                 message.update, now_, counts);
  Trace(agent.Name(), " says ", Words(message.update), status.ok() ? "" : ": ",
        status.ok() ? "" : status.ToString());
  promises_.Updated(agent, message.update, status, now_, counts);
  AfterCall();
  if (at_->table == nullptr) return;
  const NodePhase phase = message.update.phase;
  if (!status.ok()) {
    End(agent.index(), message.stream, status);
  } else if (phase == NodePhase::kFinished || phase == NodePhase::kLeft) {
    End(agent.index(), message.stream, absl::OkStatus());  // It ends without an error.
  } else if (counts) {
    Answer(agent, message);
  }
}

void Simulator::Answer(const SimulatedAgent& agent, const SimulatedMessage& message) {
  auto answer = std::make_shared<SimulatedMessage>();
  answer->kind = SimulatedMessage::Kind::kAnswer;
  answer->stream = message.stream;
  answer->number = message.number;
  SendDown(agent.index(), std::move(answer));
}

void Simulator::End(int agent, uint32_t stream, const absl::Status& status) {
  auto message = std::make_shared<SimulatedMessage>();
  message->kind = SimulatedMessage::Kind::kEnd;
  message->stream = stream;
  message->end = status;
  SendDown(agent, std::move(message));
}

void Simulator::Notices(int index, uint32_t stream) {
  if (at_->table == nullptr) return;
  SimulatedAgent& agent = *agents_[static_cast<size_t>(index)];
  Session& session = at_->sessions[static_cast<size_t>(agent.slot())];
  if (session.agent != index || session.stream != stream) return;
  session = {};
  promises_.Detached(agent);
  at_->table->Disconnected(agent.info().node_id, agent.info().incarnation, now_);
  Trace("the stream of ", agent.Name(), " is gone");
  AfterCall();
}

void Simulator::Reported(const Event& event) {
  const SimulatedAgent& agent = *agents_[static_cast<size_t>(event.agent)];
  for (Service& service : services_) {
    const bool hears = service.voter && now_ >= service.paused_until;
    if (hears) ToVoter(service, VoterProvenDead{agent.info().incarnation});
  }
  if (shared()) at_ = &Leader();
  if (at_->table == nullptr || now_ < at_->paused_until ||
      links_[static_cast<size_t>(event.agent)].up.cut_until > now_) {
    if (event.token > 20) return;  // The keeper gives up.
    return queue_.Push(
        {now_ + seconds(1), 0, EventKind::kReported, event.agent, event.token + 1, nullptr});
  }
  promises_.Reported(agent);
  const absl::Status status =
      at_->table->NodeDied(agent.info().node_id, agent.info().incarnation, "killed", now_);
  Trace("the keeper of ", agent.Name(), " reports its death: ", status.ToString());
  AfterCall();
}

void Simulator::Tick(uint32_t token) {
  if (at_->table == nullptr || token != at_->tick_token) return;
  at_->tick_at.reset();
  const std::optional<Instant> next = NextTick();
  if (next && *next <= now_ && at_->writing) {
    at_->table->StandBy(now_);
    ArmTick();
  } else if (next && *next <= now_) {
    at_->table->Tick(now_);
    promises_.Ticked(*at_->table, now_);
    AfterCall();
  } else {
    ArmTick();
  }
}

// The table decides nothing more until all is kept.
std::optional<Instant> Simulator::NextTick() const {
  const std::optional<Instant> next = at_->table->NextDeadline();
  return next && at_->writing ? at_->table->NextStandBy() : next;
}

void Simulator::ArmTick() {
  const std::optional<Instant> next = NextTick();
  if (!next || (at_->tick_at && *at_->tick_at <= *next)) return;
  at_->tick_at = std::max(now_, *next);
  queue_.Push({*at_->tick_at, 0, EventKind::kTick, -1, ++at_->tick_token, nullptr, Index()});
}

void Simulator::HandsOver(const Event& event) {
  if (at_->table == nullptr || event.token != at_->life) return;
  if (at_->writing) return;  // TellWhatWaited tells it once all is kept.
  Session& session = at_->sessions[static_cast<size_t>(event.agent)];
  if (session.agent < 0 || !std::exchange(session.news, false)) return;
  const SimulatedAgent& agent = *agents_[static_cast<size_t>(session.agent)];
  auto message = std::make_shared<SimulatedMessage>();
  message->kind = SimulatedMessage::Kind::kDirective;
  message->stream = session.stream;
  message->directive = at_->table->DirectiveFor(agent.info().node_id);
  Trace(agent.Name(), " is told: ", KindName(message->directive.kind), " ",
        message->directive.round, " ", message->directive.reason,
        message->directive.assignment.notice);
  if (simulation_.trace && message->directive.kind == Directive::Kind::kFinish) {
    Trace("… with ", Words(message->directive.outcome));
  }
  promises_.Told(agent, message->directive);
  SendDown(agent.index(), std::move(message));
}

// Does what JobRendezvous does after every call: keeps what must be kept, then tells the nodes.
void Simulator::AfterCall() {
  std::vector<RoundTable::Ended> ended = at_->table->TakeEnded();
  const std::vector<std::string> changed = at_->table->TakeChanged();
  const std::vector<std::string> asked = at_->table->TakeAsked();
  for (const RoundTable::Ended& end : ended) promises_.Ended(end, now_);
  promises_.Checked(*at_->table, now_);
  if (at_->table->state() != traced_) {
    traced_ = at_->table->state();
    if (simulation_.trace) {
      Trace("the job is ", StateName(traced_), ": ", Words(at_->table->Status(now_, 0)));
    }
  }
  const bool kept = Keep();
  promises_.CallOver();
  if (shared() && !kept) {
    std::move(ended.begin(), ended.end(), std::back_inserter(at_->ended));
    for (const std::string& id : changed) {
      at_->sessions[static_cast<size_t>(SlotOf(id))].news = true;
    }
  }
  if (kept) Tell(ended, changed);
  if (at_->table != nullptr) Probe(asked);
  if (at_->table != nullptr) ArmTick();
}

// Sends probes at once; they do not wait until a change is kept.
void Simulator::Probe(const std::vector<std::string>& asked) {
  for (const std::string& id : asked) {
    promises_.Asked(SlotOf(id), now_);
    const Session& session = at_->sessions[static_cast<size_t>(SlotOf(id))];
    if (session.agent < 0) continue;
    auto message = std::make_shared<SimulatedMessage>();
    message->kind = SimulatedMessage::Kind::kProbe;
    message->stream = session.stream;
    SendDown(session.agent, std::move(message));
  }
}

void Simulator::Tell(const std::vector<RoundTable::Ended>& ended,
                     const std::vector<std::string>& changed) {
  for (const RoundTable::Ended& end : ended) {
    Session& session = at_->sessions[static_cast<size_t>(SlotOf(end.node_id))];
    if (session.agent + 1 != static_cast<int>(end.incarnation)) continue;
    Trace(agents_[static_cast<size_t>(session.agent)]->Name(),
          " is given up: ", end.status.ToString());
    End(session.agent, session.stream, end.status);
    session = {};
  }
  for (const std::string& id : changed) {
    Session& session = at_->sessions[static_cast<size_t>(SlotOf(id))];
    if (session.agent < 0 || std::exchange(session.news, true)) continue;
    const Duration busy = !calm_ && OneIn(20) ? UpTo(milliseconds(300)) : Duration::zero();
    queue_.Push({now_ + busy, 0, EventKind::kHandsOver, SlotOf(id), at_->life, nullptr, Index()});
  }
}

// False if the rendezvous died before or after it kept its change, or if the write is not done.
bool Simulator::Keep() {
  if (shared()) return KeepElsewhere();
  if (at_->table->durable_version() == at_->committed) return true;
  const bool faulty = keeps_ && !calm_ && crash_in_ > 0;
  if (faulty && OneIn(crash_in_)) {
    Count(Fault::kRendezvousLostItsChange);
    Trace("the rendezvous dies before it keeps its change");
    Crash(UpTo(seconds(OneIn(4) ? 35 : 5)));
    return false;
  }
  at_->committed = at_->table->durable_version();
  JobRecord record = at_->table->Record();
  if (simulation_.trace) Trace("it keeps ", Words(record));
  promises_.Recorded(record, *at_->table, now_);
  promises_.Kept(promises_.decided());
  if (keeps_) place_.record = std::move(record);
  ++result_.records;
  if (faulty && OneIn(crash_in_)) {
    Count(Fault::kRendezvousLostItsMessages);
    Trace("the rendezvous dies before it tells its change");
    Crash(UpTo(seconds(OneIn(4) ? 35 : 5)));
    return false;
  }
  return true;
}

void Simulator::Crash(Duration down) {
  Forget();
  at_->paused_until = {};
  at_->up = false;
  queue_.Push({now_ + down, 0, EventKind::kOpens, -1, at_->life, nullptr, Index()});
}

// Drops what the process knew and its streams.
void Simulator::Forget() {
  at_->table.reset();
  ++at_->life;
  at_->tick_at.reset();
  ++at_->tick_token;
  at_->writing = at_->unsure = at_->over = false;
  at_->ended.clear();
  std::fill(at_->sessions.begin(), at_->sessions.end(), Session{});
  for (const auto& agent : agents_) {
    if (LinkOf(*agent).service != Index()) continue;
    LinkOf(*agent).joined = 0;
    if (at_->dark) continue;
    if (agent->alive() && !OneIn(10)) Break(*agent, false, true);
  }
}

void Simulator::Open() {
  at_->up = true;
  if (shared()) return queue_.Push({now_, 0, EventKind::kLooks, -1, at_->life, nullptr, Index()});
  Restore();
}

void Simulator::Restore() {
  at_->table = place_.record ? std::make_unique<RoundTable>(rules_, *place_.record, now_)
                             : std::make_unique<RoundTable>(rules_);
  at_->committed = at_->recorded = at_->table->durable_version();
  if (simulation_.trace) Trace("the rendezvous is back: ", Words(at_->table->Status(now_, 0)));
  promises_.Restored(place_.record.value_or(JobRecord()), *at_->table, now_);
  if (place_.record) {
    ++result_.restores;
    ArmTick();
  }
}

// ---- Several services, one place.

// A service that leads and does not stand still; the first service if there is none.
Service& Simulator::Leader() {
  Service* leader = &services_[0];
  for (Service& service : services_) {
    const bool leads = service.table != nullptr && now_ < service.leads_until;
    if (leads && now_ >= service.paused_until) leader = &service;
    if (voters() && service.over) return service;
  }
  return *leader;
}

// Tries to lead and retries until it leads.
void Simulator::Looks(uint32_t token) {
  if (token != at_->life || at_->table != nullptr) return;
  queue_.Push({now_ + kLook, 0, EventKind::kLooks, -1, at_->life, nullptr, Index()});
  if (now_ < std::max(at_->cut_until, place_.down_until) || now_ < place_.lease_until) return;
  at_->term = ++place_.term;
  at_->version = place_.version;
  place_.lease_until = now_ + kServiceLease;
  at_->leads_until = now_ + kOwnLease;
  ++result_.terms;
  Trace("service ", Index(), " leads, in term ", at_->term);
  promises_.Kept(place_.decided);
  Restore();
  queue_.Push({now_ + kServiceLease / 3, 0, EventKind::kRenews, -1, at_->life, nullptr, Index()});
}

void Simulator::Renews(uint32_t token) {
  if (token != at_->life || at_->table == nullptr) return;
  const bool reached = now_ >= std::max(at_->cut_until, place_.down_until);
  if (reached && (place_.term != at_->term || now_ >= place_.lease_until)) {
    return Lose("its lease is gone");
  }
  if (reached) {
    place_.lease_until = now_ + kServiceLease;
    at_->leads_until = now_ + kOwnLease;
  }
  queue_.Push({now_ + (reached ? kServiceLease / 3 : Duration(milliseconds(100))), 0,
               EventKind::kRenews, -1, at_->life, nullptr, Index()});
}

void Simulator::Lose(const char* why) {
  Trace("service ", Index(), " has lost: ", why);
  ++result_.lost;
  Forget();
  if (voters()) return;
  queue_.Push({now_ + kLook, 0, EventKind::kLooks, -1, at_->life, nullptr, Index()});
}

// Begins to write a change. Returns true if nothing waits to be kept; only then may nodes be told.
bool Simulator::KeepElsewhere() {
  const uint64_t durable = at_->table->durable_version();
  if (durable != std::exchange(at_->recorded, durable)) {
    const JobRecord record = at_->table->Record();
    if (simulation_.trace) Trace("it decides ", Words(record));
    promises_.Recorded(record, *at_->table, now_);
    ++result_.records;
  }
  if (at_->writing) {
    NotePause();
  } else if (durable != at_->committed) {
    at_->writing = true;
    at_->unkept_since = now_;
    Write();
  }
  return !at_->writing;
}

// The table takes the time of a wait as its own pause.
void Simulator::NotePause() {
  if (now_ - at_->unkept_since < milliseconds(500)) return;
  promises_.Paused(Duration::zero());  // The table itself knows how long it was.
  at_->unkept_since = now_;
}

void Simulator::Write() {
  WriteOfRecord write;
  write.record = at_->table->Record();
  write.decided = promises_.decided();
  write.durable = at_->table->durable_version();
  write.service = Index();
  write.term = at_->term;
  write.expected = at_->version;
  write.again = at_->unsure;
  writes_.push_back(std::move(write));
  const uint32_t number = static_cast<uint32_t>(writes_.size() - 1);
  if (voters()) return Propose(number);
  const auto strikes = [&](ServiceFault fault, int one_in) {
    if (calm_ || !service_faults_[static_cast<size_t>(fault)] || !OneIn(one_in)) return false;
    ++result_.service_faults[static_cast<size_t>(fault)];
    return true;
  };
  const bool reached = now_ >= std::max(at_->cut_until, place_.down_until);
  Duration takes = milliseconds(1) + UpTo(milliseconds(OneIn(20) ? 500 : 10));
  Duration told = 2 * takes;
  bool answered = reached;
  if (reached && strikes(ServiceFault::kWriteLost, 20)) {
    answered = false;
    takes = kEver;
  } else if (reached && strikes(ServiceFault::kAnswerLost, 20)) {
    answered = false;
  } else if (reached && strikes(ServiceFault::kWriteLate, 20)) {
    answered = false;
    takes = UpTo(seconds(20));
  }
  if (!answered) told = UpTo(kWritePatience);
  if (reached && takes < kEver) {
    queue_.Push({now_ + takes, 0, EventKind::kWritten, -1, number, nullptr, Index()});
  }
  writes_.back().fate = answered ? WriteOfRecord::Fate::kDone : WriteOfRecord::Fate::kUnknown;
  queue_.Push({now_ + told, 0, EventKind::kWriteTold, -1, number, nullptr, Index()});
  if (strikes(ServiceFault::kStands, 30)) Stand(*at_);
}

// The write reaches the place, even if its sender is gone.
void Simulator::Written(const Event& event) {
  WriteOfRecord& write = writes_[event.token];
  const bool leads = place_.term == write.term && now_ < place_.lease_until;
  const bool fits = write.expected == place_.version;
  const bool answered = write.fate == WriteOfRecord::Fate::kDone;
  if (!leads || (!fits && !write.again)) {
    if (leads && answered) promises_.Violated("a write of the leader is refused");
    if (answered) write.fate = WriteOfRecord::Fate::kRefused;
  } else if (fits || answered) {  // If !fits, a retry replaces the write that got no answer.
    place_.record = write.record;
    place_.decided = write.decided;
    promises_.Kept(write.decided);
    write.version = ++place_.version;
    if (simulation_.trace) Trace("the place has ", Words(write.record));
  }
}

void Simulator::WriteTold(uint32_t number) {
  const WriteOfRecord& write = writes_[number];
  if (at_->table == nullptr || write.term != at_->term) return;
  if (write.fate == WriteOfRecord::Fate::kRefused) return Lose("its write was refused");
  if (write.fate == WriteOfRecord::Fate::kUnknown) {
    at_->unsure = true;
    return queue_.Push(
        {now_ + kWriteAgain, 0, EventKind::kKeepsAgain, -1, at_->life, nullptr, Index()});
  }
  at_->unsure = false;
  at_->version = write.version;
  at_->committed = write.durable;
  NotePause();
  at_->over = voters() && write.record.state == JobState::kOver;
  const bool alone = voters() && at_->voter->entry()->members.size() < 2;
  if (alone && write.record.state == JobState::kRunning) NameCandidates();
  if (at_->table->durable_version() != at_->committed) return Write();
  at_->writing = false;
  TellWhatWaited();
}

void Simulator::TellWhatWaited() {
  std::vector<std::string> changed;
  for (size_t slot = 0; slot < at_->sessions.size(); ++slot) {
    if (std::exchange(at_->sessions[slot].news, false)) changed.push_back(absl::StrCat("id", slot));
  }
  Tell(std::exchange(at_->ended, {}), changed);
  ArmTick();
}

void Simulator::Stand(Service& service) {
  const Duration duration = UpTo(seconds(OneIn(3) ? 30 : 8));
  Trace("service ", &service - services_.data(), " stands still for ", duration / milliseconds(1),
        " ms");
  const Instant until = std::max(service.paused_until, now_ + duration);
  const Duration more = until - std::max(service.paused_until, now_);
  service.paused_until = until;
  // A service that no longer leads tells nothing more, so its pause does not count.
  if (service.table != nullptr && now_ < service.leads_until) promises_.Paused(more);
}

// The service has checked that it leads, then stands still; its message leaves later.
void Simulator::StandBeforeWord(Link& link) {
  const size_t fault = static_cast<size_t>(ServiceFault::kStandsBeforeWord);
  if (calm_ || !service_faults_[fault] || !OneIn(300)) return;
  Service& service = services_[static_cast<size_t>(link.service)];
  ++result_.service_faults[fault];
  Stand(service);
  link.down.last = std::max(link.down.last, service.paused_until);
}

void Simulator::InjectServiceFault() {
  if (calm_) return;
  const double wait = std::exponential_distribution<double>(1.0)(random_);
  queue_.Push({now_ + std::chrono::duration_cast<Duration>(between_service_faults_ * wait) +
                   milliseconds(1),
               0, EventKind::kServiceFault, -1, 0, nullptr});
  const ServiceFault fault = static_cast<ServiceFault>(Below(static_cast<int>(kServiceFaults)));
  if (!service_faults_[static_cast<size_t>(fault)]) return;
  at_ = OneIn(3) ? &services_[static_cast<size_t>(Below(simulation_.services))] : &Leader();
  if (!at_->up) return;
  switch (fault) {
    case ServiceFault::kStands:
      Stand(*at_);
      break;
    case ServiceFault::kKilled:
      Trace("service ", Index(), " is killed");
      Crash(UpTo(seconds(OneIn(3) ? 60 : 5)));
      break;
    case ServiceFault::kCutOff:
      at_->cut_until = now_ + UpTo(seconds(OneIn(3) ? 20 : 3));
      Trace("service ", Index(), " does not reach the place");
      break;
    case ServiceFault::kPlaceDown:
      place_.down_until = now_ + UpTo(seconds(OneIn(3) ? 20 : 3));
      Trace("nobody reaches the place");
      break;
    default:
      return;  // Write and SendDown inject the others.
  }
  ++result_.service_faults[static_cast<size_t>(fault)];
}

// ---- Voters. These do what JobVoter and VoterThread do.

VoterRule Simulator::RuleOfVoters() const {
  const JobPolicy& policy = rules_.policy;
  VoterRule rule;
  rule.lease = LeaseForNodes(policy.lease, policy.max_nodes + policy.spares).lease;
  rule.beat = std::min<Duration>(kLook, rule.lease / 5);
  rule.lapse_after = policy.lease.loss_limit / 2;
  if (policy.max_nodes + policy.spares <= 2) rule.lapse_after = policy.lease.loss_limit;
  return rule;
}

// The first agent of the first slot begins the job.
void Simulator::Host(SimulatedAgent& agent) {
  agent.SetPlaces(simulation_.nodes);
  const size_t slot = static_cast<size_t>(agent.slot());
  if (slot >= services_.size()) return;
  Service& service = services_[slot];
  service.agent = agent.index();
  service.dark = false;
  service.up = true;
  service.paused_until = {};
  const NodeInfo& info = agent.info();
  service.voter.emplace(VoterMember{info.incarnation, info.host, info.address}, RuleOfVoters());
  if (info.incarnation == 1) ToVoter(service, VoterFounded{});
}

void Simulator::Dies(const SimulatedAgent& agent, bool dark) {
  for (Service& service : services_) {
    if (service.agent != agent.index() || (service.over && agent.outcome())) continue;
    Service* const before = std::exchange(at_, &service);
    service.dark = dark;
    Forget();
    service.voter.reset();
    service.agent = -1;
    service.up = false;
    service.leads_until = {};
    service.signs.clear();
    service.taken.clear();
    service.taken_at = {};
    service.told_leader.reset();
    at_ = before;
  }
}

Service* Simulator::HostOf(Incarnation incarnation) {
  for (Service& service : services_) {
    if (service.voter && service.voter->self().incarnation == incarnation) return &service;
  }
  return nullptr;
}

void Simulator::ToVoter(Service& service, const VoterEvent& event) {
  Service* const before = std::exchange(at_, &service);
  const VoterStep step = service.voter->Step(event, now_, random_());
  service.leads_until = service.voter->LeadsUntil();
  for (const std::string& line : step.news) Trace(line);
  if (step.lost && service.table != nullptr && !service.over) Lose(step.lost->c_str());
  if (step.leads) TakeOver(*step.leads);
  if (step.decided && service.table != nullptr && *step.decided >= service.proposed) {
    WriteOfRecord& write = writes_[service.write];
    if (write.fate == WriteOfRecord::Fate::kUnknown && write.term == service.term) {
      write.fate = WriteOfRecord::Fate::kDone;
      write.version = *step.decided;
      promises_.Kept(write.decided);
      queue_.Push({now_, 0, EventKind::kWriteTold, -1, service.write, nullptr, Index()});
    }
  }
  TakeSigns(service, step);
  TellLeader(service, event, step);
  for (const VoterMessage& message : step.send) Deliver(service, message);
  if (step.next != Instant::max()) {
    queue_.Push({std::max(step.next, now_ + milliseconds(1)), 0, EventKind::kVoterTicks, -1,
                 ++service.voter_tick, nullptr, Index()});
  }
  at_ = before;
}

void Simulator::TakeSigns(Service& service, const VoterStep& step) {
  for (const auto& [from, beat] : step.answered) {
    if (service.table == nullptr || now_ >= service.leads_until) return;
    const SimulatedAgent& agent = *agents_[from - 1];
    if (!service.table->HeardFromVoter(agent.info().node_id, from, now_)) continue;
    promises_.Heard(agent, now_);
    service.taken[from] = {service.voter->term(), beat};
  }
}

Instant Simulator::TakenElsewhere(const SimulatedAgent& agent) {
  if (!voters() || static_cast<size_t>(agent.slot()) >= services_.size()) return {};
  Service& service = services_[static_cast<size_t>(agent.slot())];
  if (service.agent != agent.index()) return {};
  const bool leads = service.table != nullptr && now_ < service.leads_until;
  const Incarnation self = agent.info().incarnation;
  if (leads && service.table->HeardFromVoter(agent.info().node_id, self, now_)) {
    promises_.Heard(agent, now_);
    return now_;
  }
  return service.taken_at;
}

void Simulator::NoteTaken(const VoterMessage& append) {
  std::erase_if(at_->signs, [&](const Service::Sign& sign) {
    const bool taken =
        sign.to == append.from && sign.term == append.term && sign.beat <= append.taken;
    if (taken) at_->taken_at = std::max(at_->taken_at, sign.at);
    return taken;
  });
}

// The agent of a voter that hears who leads goes there.
void Simulator::TellLeader(Service& service, const VoterEvent& event, const VoterStep& step) {
  Incarnation leader = step.leads ? service.voter->self().incarnation : 0;
  const auto* const heard = std::get_if<VoterHeard>(&event);
  if (heard != nullptr && heard->message.kind == VoterMessage::Kind::kAppend &&
      heard->message.term == service.voter->term() &&
      heard->message.from == service.voter->leader()) {
    leader = heard->message.from;
  }
  const std::pair<Term, Incarnation> led(service.voter->term(), leader);
  if (leader == 0 || service.told_leader == led) return;
  const bool first = !std::exchange(service.told_leader, led).has_value();
  Service* const host = HostOf(leader);
  if (first || host == nullptr || service.agent < 0) return;
  SimulatedAgent& agent = *agents_[static_cast<size_t>(service.agent)];
  const int place = static_cast<int>(host - services_.data());
  LinkOf(agent).tries = place;
  if (agent.stream() == 0 || LinkOf(agent).service != place) agent.TurnToLeader();
}

void Simulator::Deliver(Service& from, VoterMessage message) {
  const bool again = !from.signs.empty() && message.term == from.signs.back().term &&
                     message.beat <= from.signs.back().beat;
  if (message.kind == VoterMessage::Kind::kAppended && !again && message.beat > 0) {
    from.signs.push_back({message.to, message.term, message.beat, now_});
    if (from.signs.size() > 64) from.signs.erase(from.signs.begin());
  }
  if (const auto taken = from.taken.find(message.to); message.kind == VoterMessage::Kind::kAppend &&
                                                      taken != from.taken.end() &&
                                                      taken->second.first == message.term) {
    message.taken = taken->second.second;
  }
  Service* const to = HostOf(message.to);
  if (to == nullptr || from.agent < 0) return;
  const Link& here = links_[static_cast<size_t>(from.agent)];
  const Link& there = links_[static_cast<size_t>(to->agent)];
  if (here.up.cut_until > now_ || there.down.cut_until > now_) return;
  const Duration takes = (here.delay + there.delay) / 2 + UpTo(milliseconds(2));
  queue_.Push({now_ + takes, 0, EventKind::kVoterHears, -1, 0, nullptr,
               static_cast<int>(to - services_.data()), std::make_shared<VoterMessage>(message)});
}

// A record's text is the number of its write.
void Simulator::TakeOver(Term term) {
  at_->term = static_cast<int>(term);
  at_->version = at_->voter->entry()->version;
  uint32_t number = 0;
  if (absl::SimpleAtoi(at_->voter->entry()->record, &number)) {
    place_.record = writes_[number].record;
    place_.decided = writes_[number].decided;
  }
  ++result_.terms;
  Trace("service ", Index(), " leads, in term ", term);
  promises_.Kept(place_.decided);
  Restore();
  queue_.Push({now_ + kLook, 0, EventKind::kLooksAtNodes, -1, at_->life, nullptr, Index()});
}

void Simulator::Propose(uint32_t number) {
  if (at_->over) {  // It waits only until all nodes know.
    writes_[number].fate = WriteOfRecord::Fate::kDone;
    promises_.Kept(writes_[number].decided);
    return queue_.Push({now_, 0, EventKind::kWriteTold, -1, number, nullptr, Index()});
  }
  writes_[number].fate = WriteOfRecord::Fate::kUnknown;
  at_->write = number;
  at_->proposed = at_->voter->entry()->version + 1;
  ToVoter(*at_, VoterProposed{static_cast<Term>(at_->term), absl::StrCat(number)});
}

void Simulator::LookAtNodes() {
  if (at_->table == nullptr) return;
  if (at_->table->state() != JobState::kPreflight) NameCandidates();
  queue_.Push({now_ + kLook, 0, EventKind::kLooksAtNodes, -1, at_->life, nullptr, Index()});
}

void Simulator::NameCandidates() {
  if (at_->table->round() == 0) return;
  VoterCandidates told;
  const Incarnation self = at_->voter->self().incarnation;
  for (const NodeInfo& node : at_->table->Nodes()) {
    ++told.nodes;
    if (node.incarnation != self) told.candidates.push_back({node.incarnation, node.host, ""});
  }
  told.nodes = std::max(told.nodes - 1, 1);
  const VoterMembers& members = at_->voter->entry()->members;
  std::stable_partition(
      told.candidates.begin(), told.candidates.end(),
      [&](const VoterMember& one) { return FindMember(members, one.incarnation) != nullptr; });
  ToVoter(*at_, told);
}

// ---- Faults.

void Simulator::Inject() {
  if (calm_) return;
  if (simulation_.standstill) return StandStill();
  const double wait = std::exponential_distribution<double>(1.0)(random_);
  queue_.Push(
      {now_ + std::chrono::duration_cast<Duration>(between_faults_ * wait) + milliseconds(1), 0,
       EventKind::kFault, -1, 0, nullptr});
  if (agents_.empty()) return;
  idle_ = alive_ == 0 ? idle_ + 1 : 0;
  if (idle_ > 20) return BeCalm();  // No agent comes any more.
  for (int tries = 0; tries < 30; ++tries) {
    SimulatedAgent& agent = *agents_[static_cast<size_t>(Below(static_cast<int>(agents_.size())))];
    const Fault fault = static_cast<Fault>(Below(static_cast<int>(kFaults)));
    const bool of_agent = fault < Fault::kUnfit;
    if (!enabled_[static_cast<size_t>(fault)]) continue;
    if (of_agent && (!agent.alive() || agent.local())) continue;
    return Strike(fault, agent);
  }
}

void Simulator::Strike(Fault fault, SimulatedAgent& agent) {
  const uint64_t before = result_.faults[static_cast<size_t>(fault)];
  switch (fault) {
    case Fault::kAgentKilled:
      Kill(agent, true);
      break;
    case Fault::kAgentKilledUnheard:
      Kill(agent, false);
      break;
    case Fault::kHostLost:
      LosePower(agent);
      break;
    case Fault::kRestarted:
      Kill(agent, OneIn(2));
      if (!repairs_) Again(agent, false);
      break;
    case Fault::kReplaced:
      if (OneIn(2)) Cut(agent, true, true, UpTo(seconds(90)));
      Again(agent, true);
      break;
    case Fault::kImpostor:
      Again(agent, true);
      break;
    case Fault::kNewcomer:
      if (!OneIn(3)) return;
      NewAgent(slots_, absl::StrCat("node", slots_), false);
      ++slots_;
      break;
    case Fault::kLeft:
      if (!OneIn(4)) return;
      Trace(agent.Name(), " is asked to leave");
      agent.Leave();
      break;
    case Fault::kPaused:
      Pause(agent, UpTo(seconds(OneIn(3) ? 30 : 8)), StandsStill::kAgent);
      break;
    case Fault::kStands:
      Pause(agent, seconds(30) + UpTo(seconds(60)), StandsStill::kAgent);
      break;
    case Fault::kFrozen:
      Pause(agent, seconds(30) + UpTo(seconds(60)), StandsStill::kNode);
      break;
    case Fault::kCut:
      Cut(agent, true, true, UpTo(seconds(60)));
      break;
    case Fault::kCutUpward:
      Cut(agent, true, false, UpTo(seconds(60)));
      break;
    case Fault::kCutDownward:
      Cut(agent, false, true, UpTo(seconds(60)));
      break;
    case Fault::kPartition: {
      const Duration duration = UpTo(seconds(50));
      const int share = 2 + Below(3);
      for (const auto& other : agents_) {
        if (other->alive() && !other->local() && OneIn(share)) Cut(*other, true, true, duration);
      }
      break;
    }
    case Fault::kStreamBroken:
      Break(agent, true, true);
      break;
    case Fault::kStreamBrokenUnseen:
      Break(agent, false, true);
      break;
    case Fault::kStreamLost:
      Break(agent, false, false);
      break;
    case Fault::kSlowLink:
      LinkOf(agent).delay = UpTo(seconds(2)) + milliseconds(1);
      break;
    case Fault::kWorkerFailed:
      agent.EndWorkers(UpTo(milliseconds(100)), true);
      break;
    case Fault::kWorkersGone:
      Trace("the workers of ", agent.Name(), " are gone");
      agent.ForgetWorkers();
      break;
    case Fault::kRendezvousPaused:
      if (shared() || !OneIn(3) || at_->table == nullptr || now_ < at_->paused_until) return;
      PauseRendezvous(UpTo(seconds(OneIn(3) ? 120 : 10)));
      break;
    case Fault::kRendezvousRestarted:
      if (shared() || !keeps_ || at_->table == nullptr) return;
      Trace("the rendezvous dies");
      Crash(UpTo(seconds(OneIn(3) ? 35 : 5)));
      break;
    default:
      return;  // The others are injected elsewhere.
  }
  result_.faults[static_cast<size_t>(fault)] = before + 1;
}

void Simulator::Kill(SimulatedAgent& agent, bool heard) {
  Trace(agent.Name(), " is killed");
  const uint32_t stream = agent.stream();
  agent.Kill(false);
  promises_.Died(agent, now_, now_ < at_->paused_until);
  --alive_;
  if (voters()) Dies(agent);
  const Duration sweeping = UpTo(milliseconds(500));
  queue_.Push({now_ + sweeping, 0, EventKind::kSwept, agent.index(), 0, nullptr});
  Link& link = LinkOf(agent);
  if (stream != 0 && !link.up.lost) {
    queue_.Push({Arrival(link, link.up), 0, EventKind::kNotices, agent.index(), stream, nullptr,
                 link.service});
  }
  if (repairs_ && (simulation_.standstill || !OneIn(10))) Again(agent, OneIn(3));
  if (!heard) return;
  for (int times = OneIn(5) ? 2 : 1; times > 0; --times) {
    queue_.Push({now_ + sweeping + milliseconds(1) + UpTo(milliseconds(OneIn(5) ? 5000 : 50)), 0,
                 EventKind::kReported, agent.index(), 0, nullptr});
  }
}

// The keeper checks its agent: it ends an agent that stands still, with its workers.
void Simulator::Fence(SimulatedAgent& agent, uint32_t token) {
  if (!simulation_.fence || !agent.KeeperLooks(token)) return;
  Trace(agent.Name(), " stands still: its keeper ends it");
  Kill(agent, true);
}

// Starts a new agent in this node's place. On the same host it waits for the old agent's keeper.
void Simulator::Again(const SimulatedAgent& agent, bool elsewhere) {
  const std::string host =
      elsewhere ? absl::StrCat("host", ++other_hosts_) : std::string(agent.info().host);
  reborn_.push_back({agent.slot(), host});
  const Duration sweeping = elsewhere ? Duration::zero() : milliseconds(501);
  queue_.Push({now_ + sweeping + UpTo(seconds(4)), 0, EventKind::kArrival,
               -static_cast<int>(reborn_.size()), 0, nullptr});
}

void Simulator::Pause(SimulatedAgent& agent, Duration duration, StandsStill what) {
  if (now_ < agent.paused_until()) return;
  constexpr const char* kWhat[] = {" is paused", "'s keeper is paused",
                                   " and its keeper are paused", "'s node is frozen"};
  Trace(agent.Name(), kWhat[static_cast<size_t>(what)], " for ", duration / milliseconds(1), " ms");
  agent.Pause(now_ + duration, what);
  if (!voters() || what == StandsStill::kKeeper) return;
  for (Service& service : services_) {
    if (service.agent != agent.index()) continue;
    service.paused_until = now_ + duration;
    if (service.table != nullptr) promises_.Paused(duration);
  }
}

void Simulator::PauseRendezvous(Duration duration) {
  at_->paused_until = now_ + duration;
  promises_.Paused(duration);
  Trace("the rendezvous is paused for ", duration / milliseconds(1), " ms");
}

// The one fault of a StandstillScene.
void Simulator::StandStill() {
  using Who = StandstillScene::Who;
  const StandstillScene& scene = *simulation_.standstill;
  const JobState state = at_->table == nullptr ? JobState::kForming : at_->table->state();
  if (!armed_ && state != (scene.in_preflight ? JobState::kPreflight : JobState::kRunning)) {
    return queue_.Push({now_ + milliseconds(1 + Below(20)), 0, EventKind::kFault, -1, 0, nullptr});
  }
  if (scene.after && !std::exchange(armed_, true)) {
    return queue_.Push({now_ + *scene.after, 0, EventKind::kFault, -1, 0, nullptr});
  }
  if (scene.who == Who::kRendezvous) return PauseRendezvous(scene.duration);
  if (flaps_ > 0) return Flap();
  if (twice_ >= 0) return StandStillTwice(*agents_[static_cast<size_t>(twice_)]);
  size_t number = static_cast<size_t>(Below(simulation_.nodes));
  if (voters()) {
    const size_t host = static_cast<size_t>(at_->agent);
    number = scene.of_host ? host : (host + 1 + number) % static_cast<size_t>(simulation_.nodes);
    if (!scene.of_host && number == host) number = (number + 1) % services_.size();
  }
  SimulatedAgent& agent = *agents_[number];
  if (scene.who == Who::kPower) return LosePower(agent);
  if (scene.who == Who::kTwiceCutOff) return StandStillTwice(agent);
  if (scene.who == Who::kLink) {
    flapping_ = agent.index();
    return Flap();
  }
  if (scene.who == Who::kOthers || scene.who == Who::kAllNodes) {
    for (const auto& one : agents_) {
      const bool spared = scene.who == Who::kOthers && one->index() == at_->agent;
      if (one->alive() && !spared) Pause(*one, scene.duration, StandsStill::kNode);
    }
    return;
  }
  constexpr StandsStill kWhat[] = {StandsStill::kAgent, StandsStill::kKeeper,
                                   StandsStill::kAgentAndKeeper, StandsStill::kNode};
  Pause(agent, scene.duration, kWhat[static_cast<size_t>(scene.who)]);
}

void Simulator::StandStillTwice(SimulatedAgent& agent) {
  const bool again = std::exchange(twice_, agent.index()) >= 0;
  if (again) return Pause(agent, seconds(10), StandsStill::kNode);
  Cut(agent, true, true, std::chrono::hours(1));
  Pause(agent, simulation_.standstill->duration, StandsStill::kNode);
  queue_.Push(
      {now_ + simulation_.standstill->duration + seconds(3), 0, EventKind::kFault, -1, 0, nullptr});
}

void Simulator::Flap() {
  const Duration duration = simulation_.standstill->duration;
  Cut(*agents_[static_cast<size_t>(flapping_)], true, true, duration);
  if (++flaps_ == kFlaps) return;
  queue_.Push({now_ + 2 * duration, 0, EventKind::kFault, -1, 0, nullptr});
}

// It comes back on another host.
void Simulator::LosePower(SimulatedAgent& agent) {
  Trace(agent.Name(), "'s host is lost");
  agent.Kill(true);
  promises_.Died(agent, now_, now_ < at_->paused_until);
  --alive_;
  if (voters()) Dies(agent, /*dark=*/true);
  LinkOf(agent).up.lost = LinkOf(agent).down.lost = true;
  if (repairs_ || OneIn(2)) Again(agent, true);
}

void Simulator::Cut(SimulatedAgent& agent, bool up, bool down, Duration duration) {
  Link& link = LinkOf(agent);
  Trace(agent.Name(), " is cut off",
        up && down ? ""
        : up       ? " upward"
                   : " downward",
        " for ", duration / milliseconds(1), " ms");
  if (up) link.up.cut_until = std::max(link.up.cut_until, now_ + duration);
  if (down) link.down.cut_until = std::max(link.down.cut_until, now_ + duration);
}

}  // namespace

const char* FaultName(Fault fault) {
  constexpr const char* kNames[] = {"agent killed",
                                    "agent killed unheard",
                                    "host lost",
                                    "restarted",
                                    "replaced",
                                    "impostor",
                                    "newcomer",
                                    "left",
                                    "paused",
                                    "agent stands, workers live",
                                    "node frozen",
                                    "cut off",
                                    "cut off upward",
                                    "cut off downward",
                                    "partition",
                                    "stream broken",
                                    "stream broken unseen",
                                    "stream lost",
                                    "slow link",
                                    "doubled message",
                                    "late message",
                                    "worker failed",
                                    "workers gone",
                                    "unfit node",
                                    "rendezvous paused",
                                    "rendezvous restarted",
                                    "rendezvous lost its change",
                                    "rendezvous lost its messages"};
  static_assert(std::size(kNames) == kFaults);
  return kNames[static_cast<size_t>(fault)];
}

const char* ServiceFaultName(ServiceFault fault) {
  constexpr const char* kNames[] = {"stands still", "stands still before a word",
                                    "killed",       "cut off",
                                    "place down",   "write lost",
                                    "answer lost",  "write late"};
  static_assert(std::size(kNames) == kServiceFaults);
  return kNames[static_cast<size_t>(fault)];
}

SimulationResult Simulate(const Simulation& simulation) { return Simulator(simulation).Run(); }

static std::string StandstillWords(const Simulation& simulation) {
  if (!simulation.standstill) return "";
  const StandstillScene& scene = *simulation.standstill;
  return absl::StrCat(
      " --stands ", static_cast<int>(scene.who), " --for-ms ", scene.duration / milliseconds(1),
      " --loss-limit ", scene.loss_limit / seconds(1), scene.in_preflight ? " --in-preflight" : "",
      scene.of_host ? " --of-host" : "",
      scene.after ? absl::StrCat(" --after-ms ", *scene.after / milliseconds(1)) : "");
}

std::string ReplayCommand(const Simulation& simulation) {
  return absl::StrCat(
      "simulate --seed ", simulation.seed, " --nodes ", simulation.nodes, " --steps ",
      simulation.steps,
      simulation.services > 1 ? absl::StrCat(" --services ", simulation.services) : "",
      simulation.voters ? " --voters" : "", simulation.fence ? "" : " --no-fence",
      StandstillWords(simulation), " -v");
}

}  // namespace hlaunch
