// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/voter/voter_simulator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/rendezvous/voter/voter_promises.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Time = Duration;  // Since the history began, by no process's clock.
using Trouble = VoterSimulation::Trouble;

constexpr Time kEnd = seconds(90);  // Time after the last fault in which all must be well again.
constexpr int kHosts = 10;          // Hosts that die one after the other.

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int Below(int n) { return static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  bool Percent(int percent) { return Below(100) < percent; }
  Time UpTo(Time most) {
    return Time(static_cast<int64_t>(Next() % static_cast<uint64_t>(most.count() + 1)));
  }

 private:
  uint64_t state_;
};

// One process on a node. Dead processes stay, since others may still send to them.
struct Process {
  Process(VoterMember self, const VoterRule& rule, int node_index)
      : voter(std::move(self), rule), node(node_index) {}

  Voter voter;
  int node = 0;
  bool alive = true;
  Duration clock_began{};  // What its clock showed at first.
  double rate = 1;         // The rate of its clock.
  uint32_t tick = 0;       // The last tick that was requested.
  Time stands_until{};
  std::vector<VoterEvent> waiting;  // Events that wait until it wakes.
  std::optional<Term> leads;
  uint64_t record = 0;                                  // Its last proposal, or what it leads with.
  std::vector<std::pair<uint64_t, uint64_t>> proposed;  // Versions and records.

  Instant At(Time now) const {
    return Instant(clock_began + Duration(std::llround(static_cast<double>(now.count()) * rate)));
  }
  Time When(Instant instant) const {
    const Duration shown = instant.time_since_epoch() - clock_began;
    return Time(static_cast<int64_t>(std::ceil(static_cast<double>(shown.count()) / rate)) + 1);
  }
};

struct SimulatedEvent {
  enum class Kind {
    kHappens,
    kTicks,
    kWakes,
    kProposes,
    kTellsCandidates,
    kFault,
    kHeals,
    kStarts
  };
  Time at;
  uint64_t order = 0;
  Kind kind = Kind::kFault;
  size_t process = 0;                 // A node if kStarts.
  uint32_t token = 0;                 // Number of a tick or a cut.
  std::shared_ptr<VoterEvent> event;  // Only for kHappens.
};

class World {
 public:
  explicit World(const VoterSimulation& simulation);
  VoterSimulationResult Run();

 private:
  using Kind = SimulatedEvent::Kind;
  struct Later {
    bool operator()(const SimulatedEvent& a, const SimulatedEvent& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  struct Cut {
    std::vector<std::pair<int, int>> ways;  // Pairs of nodes: from, to.
  };

  void Push(Time delay, Kind kind, size_t process, uint32_t token = 0,
            std::shared_ptr<VoterEvent> event = nullptr);
  void Handle(const SimulatedEvent& event);
  void Step(size_t index, const VoterEvent& event);
  void Take(size_t index, VoterStep step);
  void Send(const VoterMessage& message);
  void CheckOneLeader();
  void Propose(size_t index);
  void TellCandidates(size_t index);
  void Wake(size_t index);
  void StartProcess(int node);

  // Faults.
  void NextFault();
  void Inflict(VoterFault fault);
  VoterFault Choose();
  void Die(size_t index);
  void Stand(size_t index);
  void CutWays(Cut cut);
  Cut Partition(bool bridge);
  Cut Around(int node, bool in, bool out) const;
  void CeaseFaults();
  void HostDies();

  // Facts of the simulation.
  size_t Leader() const;  // A living leader; SIZE_MAX if there is none.
  size_t SomeProcess();
  bool Stands(size_t index) const { return processes_[index]->stands_until > now_; }
  bool CanGoOn() const;
  bool IsWell() const;
  std::string TroubleLeft() const;
  bool HasMajority(const VoterEntry& entry) const;
  bool Lives(Incarnation incarnation) const;
  void Tell(const std::string& line) const;

  const VoterSimulation& simulation_;
  Random random_;
  VoterRule rule_;
  VoterPromises promises_;
  VoterSimulationResult result_;
  Time now_{};
  uint64_t order_ = 0;
  std::priority_queue<SimulatedEvent, std::vector<SimulatedEvent>, Later> events_;
  std::vector<std::unique_ptr<Process>> processes_;  // By incarnation - 1.
  std::vector<size_t> on_node_;                      // The last process of each node.
  std::vector<bool> in_job_;                         // Whether the node belongs to the job.
  std::vector<std::vector<int>> blocked_;            // Number of cuts from one node to another.
  std::vector<Cut> cuts_;
  Time slow_until_{};
  int loss_ = 0, doubled_ = 0, proof_ = 0;  // In percent.
  Time usual_delay_{}, between_faults_{};
  Time faults_until_{};
  bool ceased_ = false;
  bool can_go_on_ = false;
  int hosts_dead_ = 0;
  std::vector<size_t> leaders_;  // Processes that believe they lead.
};

World::World(const VoterSimulation& simulation)
    : simulation_(simulation), random_(simulation.seed) {
  rule_.on_host_loss = simulation.on_host_loss;
  const bool calm = simulation.trouble == Trouble::kOneFollower;
  loss_ = calm || random_.OneIn(3) ? 0 : random_.Below(random_.OneIn(3) ? 30 : 5);
  doubled_ = random_.OneIn(2) ? 0 : random_.Below(10);
  proof_ = random_.OneIn(3) ? 0 : random_.Below(101);
  if (simulation.trouble == Trouble::kDeaths) proof_ = 0;
  usual_delay_ = calm || random_.OneIn(2) ? milliseconds(2) : milliseconds(1 << random_.Below(9));
  between_faults_ = milliseconds(500 << random_.Below(5));
  faults_until_ = seconds(5 + random_.Below(40));
  const size_t nodes = static_cast<size_t>(simulation.nodes);
  blocked_.assign(nodes, std::vector<int>(nodes, 0));
  on_node_.assign(nodes, 0);
  in_job_.assign(nodes, true);
}

void World::Push(Time delay, Kind kind, size_t process, uint32_t token,
                 std::shared_ptr<VoterEvent> event) {
  events_.push({now_ + delay, ++order_, kind, process, token, std::move(event)});
}

void World::Tell(const std::string& line) const {
  if (!simulation_.trace) return;
  simulation_.trace(absl::StrFormat("%9.4f %s", std::chrono::duration<double>(now_).count(), line));
}

VoterSimulationResult World::Run() {
  for (int node = 0; node < simulation_.nodes; ++node) StartProcess(node);
  Step(0, VoterFounded{absl::StrCat(processes_[0]->record = promises_.NewRecord(0))});
  NextFault();
  while (!events_.empty() && promises_.violation().empty()) {
    const SimulatedEvent event = events_.top();
    events_.pop();
    now_ = event.at;
    if (!ceased_ && simulation_.trouble != Trouble::kHosts && now_ >= faults_until_) CeaseFaults();
    if (ceased_ && (IsWell() || now_ > faults_until_ + kEnd)) break;
    ++result_.events;
    Handle(event);
  }
  if (promises_.violation().empty() && !IsWell()) promises_.Violated(TroubleLeft());
  result_.alive = can_go_on_;
  result_.leaders = promises_.leaders();
  result_.decisions = promises_.decisions();
  result_.processes = processes_.size();
  if (!promises_.violation().empty()) {
    result_.violation = absl::StrFormat(
        "after %.4f s: %s", std::chrono::duration<double>(now_).count(), promises_.violation());
    Tell(result_.violation);
  }
  return result_;
}

void World::Handle(const SimulatedEvent& event) {
  switch (event.kind) {
    case Kind::kHappens:
      return Step(event.process, *event.event);
    case Kind::kTicks:
      if (event.token == processes_[event.process]->tick) Step(event.process, VoterTimePassed{});
      return;
    case Kind::kWakes:
      return Wake(event.process);
    case Kind::kProposes:
      return Propose(event.process);
    case Kind::kTellsCandidates:
      return TellCandidates(event.process);
    case Kind::kFault:
      return NextFault();
    case Kind::kHeals:
      for (const auto& [from, to] : cuts_[event.token].ways) --blocked_[from][to];
      cuts_[event.token].ways.clear();
      return;
    case Kind::kStarts:
      return StartProcess(static_cast<int>(event.process));
  }
}

void World::StartProcess(int node) {
  const size_t slot = static_cast<size_t>(node);
  const bool again = processes_.size() > slot && now_ > Time{};
  if (again && processes_[on_node_[slot]]->alive) return;
  VoterMember self;
  self.incarnation = processes_.size() + 1;
  self.name = absl::StrCat("node", node);
  if (again && simulation_.keeps_identity) {
    self.incarnation = on_node_[slot] + 1;
    processes_[on_node_[slot]]->voter = Voter(self, rule_);
    processes_[on_node_[slot]]->alive = true;
    return;
  }
  auto process = std::make_unique<Process>(self, rule_, node);
  process->rate = 0.98 + 0.04 * random_.Below(1001) / 1000.0;
  process->clock_began = seconds(1000) + random_.UpTo(seconds(1000));
  on_node_[slot] = processes_.size();
  processes_.push_back(std::move(process));
  if (again) Tell(absl::StrCat(self.name, " is started anew"));
}

void World::Step(size_t index, const VoterEvent& event) {
  Process& process = *processes_[index];
  if (!process.alive) return;
  if (Stands(index)) {
    process.waiting.push_back(event);
    return;
  }
  Take(index, process.voter.Step(event, process.At(now_), random_.Next()));
}

void World::Take(size_t index, VoterStep step) {
  Process& process = *processes_[index];
  const std::string& name = process.voter.self().name;
  if (!simulation_.keeps_identity) promises_.Holds(process.voter);
  for (const std::string& line : step.news) Tell(absl::StrCat(name, ": ", line));
  if (step.lost) {
    process.leads.reset();
    process.proposed.clear();
    std::erase(leaders_, index);
    if (simulation_.trouble == Trouble::kOneFollower) {
      promises_.Violated(absl::StrCat("though a majority was well: ", *step.lost));
    }
  }
  if (step.leads) {
    if (!process.leads) leaders_.push_back(index);
    process.leads = step.leads;
    if (!absl::SimpleAtoi(process.voter.entry()->record, &process.record)) process.record = 0;
    promises_.Leads(name, *step.leads, process.record);
    Push({}, Kind::kTellsCandidates, index);
    Push(random_.UpTo(seconds(1)), Kind::kProposes, index);
  }
  if (step.decided) {
    for (const auto& [version, record] : process.proposed) {
      if (version == *step.decided) promises_.Decided(name, *process.leads, record);
    }
    std::erase_if(process.proposed, [&](const auto& one) { return one.first <= *step.decided; });
  }
  CheckOneLeader();
  const bool halfway = !step.send.empty() && process.stands_until == Time::max();
  const size_t sent = halfway
                          ? static_cast<size_t>(random_.Below(static_cast<int>(step.send.size())))
                          : step.send.size();
  for (size_t i = 0; i < sent; ++i) Send(step.send[i]);
  if (halfway) {
    Die(index);
  } else if (step.next != Instant::max()) {
    Push(std::max(process.When(step.next) - now_, Time(1)), Kind::kTicks, index, ++process.tick);
  }
}

void World::CheckOneLeader() {
  if (leaders_.size() < 2) return;
  std::string names;
  int leading = 0;
  for (const size_t index : leaders_) {
    const Process& process = *processes_[index];
    if (!process.alive || process.voter.LeadsUntil() <= process.At(now_)) continue;
    ++leading;
    absl::StrAppend(&names, names.empty() ? "" : " and ", process.voter.self().name);
  }
  if (leading > 1) promises_.Violated(absl::StrCat(names, " lead at once"));
}

void World::Send(const VoterMessage& message) {
  if (!simulation_.keeps_identity) promises_.Sent(message);
  const size_t to = message.to - 1;
  const int from_node = processes_[message.from - 1]->node;
  const int to_node = processes_[to]->node;
  const bool passes = blocked_[from_node][to_node] == 0;
  if (simulation_.trace && message.kind != VoterMessage::Kind::kAppended) {
    Tell(absl::StrFormat("  %d -> %d kind %d term %d (%d, %d) asked %d %s%s", from_node, to_node,
                         static_cast<int>(message.kind), message.term, message.ballot.term,
                         message.ballot.index, message.asked, message.granted ? "granted" : "",
                         passes ? "" : " lost"));
  }
  if (!passes || (!ceased_ && random_.Percent(loss_))) return;
  const auto event = std::make_shared<VoterEvent>(VoterHeard{message});
  const Time most = now_ < slow_until_ ? rule_.lease * 3 : usual_delay_;
  Push(random_.UpTo(most), Kind::kHappens, to, 0, event);
  if (random_.Percent(doubled_)) Push(random_.UpTo(most * 4), Kind::kHappens, to, 0, event);
}

void World::Propose(size_t index) {
  Process& process = *processes_[index];
  if (!process.alive || !process.leads) return;
  if (!Stands(index)) {
    const uint64_t record = promises_.NewRecord(process.record);
    process.record = record;
    process.proposed.emplace_back(process.voter.entry()->version + 1, record);
    Step(index, VoterProposed{*process.leads, absl::StrCat(record)});
  }
  Push(milliseconds(100) + random_.UpTo(seconds(1)), Kind::kProposes, index);
}

void World::TellCandidates(size_t index) {
  Process& process = *processes_[index];
  if (!process.alive || !process.leads) return;
  VoterCandidates candidates;
  for (size_t node = 0; node < on_node_.size(); ++node) {
    const bool known = !ceased_ || processes_[on_node_[node]]->alive;
    if (!in_job_[node] || !known) continue;
    candidates.candidates.push_back(processes_[on_node_[node]]->voter.self());
  }
  candidates.nodes = static_cast<int>(candidates.candidates.size());
  Step(index, candidates);
  Push(seconds(1), Kind::kTellsCandidates, index);
}

void World::Wake(size_t index) {
  Process& process = *processes_[index];
  if (Stands(index) || !process.alive) return;
  std::vector<VoterEvent> waiting = std::exchange(process.waiting, {});
  Step(index, VoterTimePassed{});
  for (const VoterEvent& event : waiting) Step(index, event);
}

void World::NextFault() {
  if (ceased_) return;
  Push(random_.UpTo(between_faults_ * 2), Kind::kFault, 0);
  if (simulation_.trouble == Trouble::kHosts) return HostDies();
  if (now_ == Time{}) return;
  Inflict(Choose());
}

VoterFault World::Choose() {
  switch (simulation_.trouble) {
    case Trouble::kOneFollower: {
      constexpr VoterFault kOne[] = {VoterFault::kStandsStill, VoterFault::kCutOff,
                                     VoterFault::kDeaf, VoterFault::kMute};
      return kOne[random_.Below(4)];
    }
    case Trouble::kDeaths:
      return random_.OneIn(2) ? VoterFault::kDies : VoterFault::kLeaderDies;
    default:
      return static_cast<VoterFault>(random_.Below(static_cast<int>(kVoterFaults)));
  }
}

void World::Inflict(VoterFault fault) {
  const size_t leader = Leader();
  size_t some = SomeProcess();
  if (some == SIZE_MAX) return;
  const bool one = simulation_.trouble == Trouble::kOneFollower;
  if (one) {  // Not while the last fault lasts, nor with fewer than 3 members.
    if (leader == SIZE_MAX || some == leader) return;
    if (processes_[leader]->voter.entry()->members.size() < 3) return;
    for (const auto& row : blocked_) {
      for (const int count : row) {
        if (count > 0) return;
      }
    }
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (Stands(i)) return;
    }
  }
  const size_t host = leader == SIZE_MAX ? some : leader;
  Tell(absl::StrCat("FAULT ", VoterFaultName(fault), " ", processes_[some]->voter.self().name,
                    ", leader ", processes_[host]->voter.self().name));
  ++result_.faults[static_cast<size_t>(fault)];
  const int node = processes_[some]->node;
  switch (fault) {
    case VoterFault::kDies:
      return Die(some);
    case VoterFault::kLeaderDies:
      return Die(host);
    case VoterFault::kDiesHalfway:
      processes_[host]->stands_until = Time::max();  // It stands still until its next step.
      processes_[host]->waiting.clear();
      return;
    case VoterFault::kStandsStill:
      return Stand(some);
    case VoterFault::kLeaderStands:
      return Stand(host);
    case VoterFault::kPartition:
    case VoterFault::kBridge:
      return CutWays(Partition(fault == VoterFault::kBridge));
    case VoterFault::kCutOff:
      return CutWays(Around(node, true, true));
    case VoterFault::kLeaderCutOff:
      return CutWays(Around(processes_[host]->node, true, true));
    case VoterFault::kDeaf:
      return CutWays(Around(node, true, false));
    case VoterFault::kMute:
      return CutWays(Around(node, false, true));
    case VoterFault::kOneWay: {
      const int other = random_.Below(simulation_.nodes);
      if (other != node) CutWays({{{node, other}}});
      return;
    }
    case VoterFault::kSlow:
      slow_until_ = now_ + random_.UpTo(rule_.lease * 3);
      return;
    case VoterFault::kNodeLeaves:
      in_job_[static_cast<size_t>(node)] = !in_job_[static_cast<size_t>(node)];
      return;
    case VoterFault::kCount:
      return;
  }
}

void World::Die(size_t index) {
  Process& process = *processes_[index];
  if (!process.alive) return;
  process.alive = false;
  process.leads.reset();
  process.waiting.clear();
  std::erase(leaders_, index);
  Tell(absl::StrCat(process.voter.self().name, " dies"));
  const Incarnation incarnation = process.voter.self().incarnation;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (!processes_[i]->alive || !random_.Percent(proof_) || simulation_.keeps_identity) continue;
    Push(random_.UpTo(random_.OneIn(2) ? milliseconds(5) : rule_.lapse_after * 2), Kind::kHappens,
         i, 0, std::make_shared<VoterEvent>(VoterProvenDead{incarnation}));
  }
  const bool again = simulation_.trouble == Trouble::kHosts || random_.Percent(60);
  if (again) Push(random_.UpTo(rule_.lease * 4), Kind::kStarts, static_cast<size_t>(process.node));
}

void World::Stand(size_t index) {
  const Time duration = random_.UpTo(rule_.lease * (random_.OneIn(3) ? 6 : 2));
  Process& process = *processes_[index];
  process.stands_until = now_ + duration;
  Push(duration, Kind::kWakes, index);
}

void World::CutWays(Cut cut) {
  for (const auto& [from, to] : cut.ways) ++blocked_[from][to];
  cuts_.push_back(std::move(cut));
  Push(random_.UpTo(rule_.lease * (random_.OneIn(3) ? 8 : 2)), Kind::kHeals, 0,
       static_cast<uint32_t>(cuts_.size() - 1));
}

World::Cut World::Partition(bool bridge) {
  std::vector<int> part(on_node_.size());
  for (int& one : part) one = random_.Below(2);
  if (bridge) part[static_cast<size_t>(random_.Below(simulation_.nodes))] = 2;
  Cut cut;
  for (int a = 0; a < simulation_.nodes; ++a) {
    for (int b = 0; b < simulation_.nodes; ++b) {
      const int sum = part[static_cast<size_t>(a)] + part[static_cast<size_t>(b)];
      if (sum == 1) cut.ways.emplace_back(a, b);
    }
  }
  return cut;
}

World::Cut World::Around(int node, bool in, bool out) const {
  Cut cut;
  for (int other = 0; other < simulation_.nodes; ++other) {
    if (other == node) continue;
    if (in) cut.ways.emplace_back(other, node);
    if (out) cut.ways.emplace_back(node, other);
  }
  return cut;
}

// Kills the host of the rendezvous once its group is whole again.
void World::HostDies() {
  const size_t leader = Leader();
  if (leader == SIZE_MAX) {
    if (now_ > (hosts_dead_ + 1) * kEnd) promises_.Violated(TroubleLeft());
    return;
  }
  if (!IsWell() || processes_[leader]->voter.entry()->members.size() < 3) return;
  if (hosts_dead_ == kHosts) return CeaseFaults();
  ++hosts_dead_;
  Die(leader);
}

void World::CeaseFaults() {
  Tell("faults cease");
  ceased_ = true;
  faults_until_ = now_;
  loss_ = doubled_ = 0;
  slow_until_ = now_;
  usual_delay_ = milliseconds(10);
  in_job_.assign(in_job_.size(), true);
  for (auto& row : blocked_) std::fill(row.begin(), row.end(), 0);
  for (Cut& cut : cuts_) cut.ways.clear();
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i]->stands_until <= now_) continue;
    processes_[i]->stands_until = now_;
    Push({}, Kind::kWakes, i);
  }
  can_go_on_ = CanGoOn();
  result_.alive = can_go_on_;
}

size_t World::Leader() const {
  for (const size_t index : leaders_) {
    const Process& process = *processes_[index];
    if (process.alive && process.voter.LeadsUntil() > process.At(now_)) return index;
  }
  return SIZE_MAX;
}

size_t World::SomeProcess() {
  const size_t index = on_node_[static_cast<size_t>(random_.Below(simulation_.nodes))];
  return processes_[index]->alive ? index : SIZE_MAX;
}

bool World::Lives(Incarnation incarnation) const { return processes_[incarnation - 1]->alive; }

bool World::HasMajority(const VoterEntry& entry) const {
  const auto alive =
      std::count_if(entry.members.begin(), entry.members.end(),
                    [&](const VoterMember& member) { return Lives(member.incarnation); });
  return alive >= Majority(static_cast<int>(entry.members.size()));
}

// Whether each group that a living process may hold as the newest has a living majority.
bool World::CanGoOn() const {
  bool any = false;
  for (const auto& process : processes_) {
    const SharedEntry& entry = process->voter.entry();
    if (!process->alive || !entry) continue;
    if (!HasMajority(*entry)) return false;
    any = any || process->voter.is_member();
  }
  return any;
}

// True if a leader decides with a whole, living group, or if none can decide and all say so.
bool World::IsWell() const {
  const size_t leader = Leader();
  if (leader != SIZE_MAX) {
    const Process& process = *processes_[leader];
    const VoterMembers& members = process.voter.entry()->members;
    const auto living = std::count_if(on_node_.begin(), on_node_.end(),
                                      [&](size_t index) { return processes_[index]->alive; });
    const bool all_live = std::all_of(members.begin(), members.end(), [&](const auto& member) {
      return Lives(member.incarnation);
    });
    return all_live && static_cast<int>(members.size()) >= GroupSize(static_cast<int>(living)) &&
           process.voter.Waits(process.At(now_)).empty();
  }
  if ((can_go_on_ && CanGoOn()) || (now_ < faults_until_ + kEnd / 2 && !events_.empty()))
    return false;
  return std::all_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    return !process->alive || !process->voter.is_member() ||
           !process->voter.Waits(process->At(now_)).empty();
  });
}

std::string World::TroubleLeft() const {
  std::string words = "faults are over, and all is not well:";
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    const Voter& voter = process->voter;
    const SharedEntry& entry = voter.entry();
    absl::StrAppend(&words, " ", voter.self().name, "/", voter.self().incarnation, " term ",
                    voter.term(), process->leads ? " leads" : "",
                    voter.is_member() ? " member" : "", " waits <", voter.Waits(process->At(now_)),
                    ">");
    if (!entry) continue;
    absl::StrAppend(&words, " (", entry->ballot.term, ", ", entry->ballot.index, ":");
    for (const auto& member : entry->members) absl::StrAppend(&words, " ", member.incarnation);
    absl::StrAppend(&words, ");");
  }
  return words;
}

}  // namespace

const char* VoterFaultName(VoterFault fault) {
  constexpr const char* kNames[] = {"dies",           "leader dies", "dies halfway", "stands still",
                                    "leader stands",  "parted",      "bridge",       "cut off",
                                    "leader cut off", "deaf",        "mute",         "one way",
                                    "slow",           "node leaves"};
  static_assert(std::size(kNames) == kVoterFaults);
  return kNames[static_cast<size_t>(fault)];
}

VoterSimulationResult Simulate(const VoterSimulation& simulation) {
  return World(simulation).Run();
}

std::string ReplayCommand(const VoterSimulation& simulation) {
  return absl::StrCat("simulate_voter --seed ", simulation.seed, " --nodes ", simulation.nodes,
                      " --trouble ", static_cast<int>(simulation.trouble),
                      simulation.on_host_loss == OnHostLoss::kContinue ? " --continue" : "",
                      simulation.keeps_identity ? " --keeps-identity" : "", " -v");
}

}  // namespace hlaunch
