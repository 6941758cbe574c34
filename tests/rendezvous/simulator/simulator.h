// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "proto/base/clock.h"

// Simulates a job of thousands of nodes in one thread: the real RoundTable, agents that follow the
// agent's contract, a network that delays, loses and duplicates messages and cuts links, and a
// clock of its own. One seed gives one history, to the last event.

namespace hlaunch {

// What a simulation does to its nodes, its network and its rendezvous.
enum class Fault {
  kAgentKilled,         // Its keeper ends the workers and reports.
  kAgentKilledUnheard,  // The same, but it cannot report.
  kHostLost,            // Agent, workers and keeper end at once; no stream is closed.
  kRestarted,           // A new incarnation on the same host.
  kReplaced,            // A new incarnation on another host; the old one may live on.
  kImpostor,            // A second agent claims the place of a living one.
  kNewcomer,            // One more node joins.
  kLeft,                // A node says that it leaves.
  kPaused,              // The agent stands still; its workers and keeper run.
  kStands,              // The same for 30 to 90 s, beyond the loss limit.
  kFrozen,              // As long: the whole node stands still, with workers and keeper.
  kCut,                 // The host's link is cut both ways.
  kCutUpward,           // The link is cut towards the rendezvous only.
  kCutDownward,         // The link is cut from the rendezvous only.
  kPartition,           // The links of some of all hosts are cut.
  kStreamBroken,        // A stream breaks and both ends notice.
  kStreamBrokenUnseen,  // The agent notices, the rendezvous does not.
  kStreamLost,          // Neither end notices.
  kSlowLink,
  kDoubled,  // A message arrives twice.
  kLate,     // A message of an earlier stream arrives.
  kWorkerFailed,
  kWorkersGone,  // A node's workers are gone, and its agent has no part in it.
  kUnfit,        // A node that cannot run rounds.
  kRendezvousPaused,
  kRendezvousRestarted,        // It restarts at any moment.
  kRendezvousLostItsChange,    // It dies after a change, before it keeps the record.
  kRendezvousLostItsMessages,  // It dies after it kept a record, before it tells any node.
  kCount,
};
inline constexpr size_t kFaults = static_cast<size_t>(Fault::kCount);
const char* FaultName(Fault fault);

// The faults where several services share a place that keeps the record, as with EtcdKeeper.
enum class ServiceFault {
  kStands,            // A service pauses, maybe the leader, maybe for longer than its lease.
  kStandsBeforeWord,  // It pauses after it checked its lease, before a message leaves.
  kKilled,
  kCutOff,      // A service does not reach the place.
  kPlaceDown,   // No service reaches the place.
  kWriteLost,   // A write is not done, and no answer comes.
  kAnswerLost,  // A write is done, but no answer comes.
  kWriteLate,   // The leader gives a write up; the place does it later if it is still allowed.
  kCount,
};
inline constexpr size_t kServiceFaults = static_cast<size_t>(ServiceFault::kCount);
const char* ServiceFaultName(ServiceFault fault);

// In a job that runs well, one process or node stands still once, or a node loses its power.
struct StandstillScene {
  enum class Who {
    kAgent,
    kKeeper,
    kAgentAndKeeper,
    kNode,
    kRendezvous,
    kPower,
    // With voters: all nodes but the one that hosts the rendezvous; all nodes; and no process
    // stands still, but the link of a node is down and up again, so long each, ten times.
    kOthers,
    kAllNodes,
    kLink,
    // A node is cut off for good, stands still once, and 3 s later for 10 s more.
    kTwiceCutOff,
  };
  Who who = Who::kNode;
  Duration loss_limit = std::chrono::seconds(30);
  Duration duration = std::chrono::seconds(30);
  bool in_preflight = false;  // Else while workers run.
  // With voters: of the node that hosts the rendezvous; else of another one.
  bool of_host = false;
  // How long after the first such moment. Unset: in some such moment.
  std::optional<Duration> after = std::nullopt;
};

struct Simulation {
  uint64_t seed = 1;
  int nodes = 10;
  uint64_t steps = 20000;  // Events with faults; after them faults cease and the job must end.
  int services = 1;        // Several share a place that keeps the record; one of them leads.
  // Each node has a voter, and the record is where a majority of them has it. Only with
  // `standstill`.
  bool voters = false;
  bool fence = true;                          // Keepers end the workers of agents that stand still.
  std::optional<StandstillScene> standstill;  // Instead of faults drawn by chance.
  std::function<void(const std::string& line)> trace;  // Empty: no trace.
};

struct SimulationResult {
  std::string violation;  // The broken promise and the time; empty if none was broken.
  uint64_t steps = 0;     // Events.
  uint64_t rounds = 0;
  uint64_t job_restarts = 0;
  uint64_t records = 0;   // Records that were kept.
  uint64_t restores = 0;  // Times that a rendezvous went on from a record.
  uint64_t agents = 0;    // Incarnations.
  int outcome = -1;       // Exit code of the job; -1 if it did not end with one.
  std::array<uint64_t, kFaults> faults{};
  std::array<uint64_t, kServiceFaults> service_faults{};
  uint64_t terms = 0;  // Services that began to lead.
  uint64_t lost = 0;   // Services that lost the lead: the lease ended or a write was refused.
};

// Runs one history. Equal Simulations give equal histories.
SimulationResult Simulate(const Simulation& simulation);

// The command that runs the same history again and prints each line of its trace.
std::string ReplayCommand(const Simulation& simulation);

}  // namespace hlaunch
