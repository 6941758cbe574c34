// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

// A job of thousands of nodes in one thread: the real RoundTable, agents that follow the agent's
// contract, a network that delays, loses, doubles and cuts, and a clock of its own. One seed is
// one history, to the last event.

namespace hlaunch {

// What a simulation does to its nodes, its network and its rendezvous.
enum class Fault {
  kAgentKilled,         // Its keeper ends the workers and reports.
  kAgentKilledUnheard,  // … and cannot report.
  kHostLost,            // Agent, workers and keeper at once; no stream is closed.
  kRestarted,           // A new incarnation on the same host.
  kReplaced,            // A new incarnation on another host, whatever the old one does.
  kImpostor,            // A second agent claims the place of one that lives.
  kNewcomer,            // One more node.
  kLeft,                // By its own word.
  kPaused,              // The agent, not its workers and not its keeper.
  kStands,              // The same, for longer than the loss limit allows.
  kFrozen,              // So long: the whole node, with workers and keeper.
  kCut,                 // The host's link, both ways,
  kCutUpward,           // … towards the rendezvous only,
  kCutDownward,         // … or from it only.
  kPartition,           // A part of all hosts.
  kStreamBroken,        // Both ends know,
  kStreamBrokenUnseen,  // … the rendezvous does not,
  kStreamLost,          // … nobody does.
  kSlowLink,
  kDoubled,  // A message arrives twice.
  kLate,     // A message of a stream that is gone arrives.
  kWorkerFailed,
  kUnfit,  // A node that cannot run rounds.
  kRendezvousPaused,
  kRendezvousRestarted,        // At any moment,
  kRendezvousLostItsChange,    // … between a change and its record,
  kRendezvousLostItsMessages,  // … or between a record and the first word of it.
  kCount,
};
inline constexpr size_t kFaults = static_cast<size_t>(Fault::kCount);
const char* FaultName(Fault fault);

// The same where several services share a place that keeps the record, as EtcdKeeper does it.
enum class ServiceFault {
  kStands,            // A service, maybe the one that leads, for longer than its lease or not.
  kStandsBeforeWord,  // … between its last look at the lease and a word to a node.
  kKilled,
  kCutOff,      // From the place.
  kPlaceDown,   // For all.
  kWriteLost,   // Not done, and nobody says so.
  kAnswerLost,  // Done, and nobody says so.
  kWriteLate,   // Given up by whoever leads, and done later, if it still may.
  kCount,
};
inline constexpr size_t kServiceFaults = static_cast<size_t>(ServiceFault::kCount);
const char* ServiceFaultName(ServiceFault fault);

struct Simulation {
  uint64_t seed = 1;
  int nodes = 10;
  uint64_t steps = 20000;  // Events with faults; then faults cease and the job must end.
  int services = 1;        // More: they share a place that keeps the record, and one leads.
  bool fence = true;       // Keepers end the workers of agents that stand still.
  std::function<void(const std::string& line)> trace;  // Empty: none.
};

struct SimulationResult {
  std::string violation;  // The promise that was broken, and when; empty: none was.
  uint64_t steps = 0;     // Events.
  uint64_t rounds = 0;
  uint64_t job_restarts = 0;
  uint64_t records = 0;   // Kept.
  uint64_t restores = 0;  // A rendezvous that went on from one.
  uint64_t agents = 0;    // Incarnations.
  int outcome = -1;       // Exit code of the job; -1 if nobody was left to be told.
  std::array<uint64_t, kFaults> faults{};
  std::array<uint64_t, kServiceFaults> service_faults{};
  uint64_t terms = 0;  // Services that began to lead.
  uint64_t lost = 0;   // Those that lost: the lease, or by a write that was refused.
};

// Runs one history; the same Simulation gives the same one.
SimulationResult Simulate(const Simulation& simulation);

// The command that runs it again, line by line.
std::string ReplayCommand(const Simulation& simulation);

}  // namespace hlaunch
