// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// simulate --seed S --nodes N --steps K [--services M] [--no-fence] [-v]: runs one history of the
// simulator; -v prints its trace. simulate … --digests M: runs M histories from seed S on and
// prints for each a line with a digest of its trace. Two builds with equal lines behave equally.

#include <cinttypes>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "tests/rendezvous/simulator/simulator.h"

namespace hlaunch {
namespace {

// Prints the digest (FNV-1a) of one history; false if it breaks a promise.
bool PrintDigest(Simulation simulation) {
  uint64_t digest = 14695981039346656037u;
  simulation.trace = [&](const std::string& line) {
    for (const char c : line) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  const SimulationResult result = Simulate(simulation);
  std::printf("seed %" PRIu64 " of %d nodes: %016" PRIx64 " %" PRIu64 " steps, %" PRIu64
              " rounds, exit code %d%s\n",
              simulation.seed, simulation.nodes, digest, result.steps, result.rounds,
              result.outcome, result.violation.empty() ? "" : ", VIOLATION");
  return result.violation.empty();
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  hlaunch::Simulation simulation;
  bool verbose = false;
  uint64_t digests = 0;
  CLI::App app("Runs one history of a simulated job.");
  app.add_option("--seed", simulation.seed);
  app.add_option("--nodes", simulation.nodes)->check(CLI::Range(1, 60000));
  app.add_option("--steps", simulation.steps);
  app.add_option("--services", simulation.services, "several share a place that keeps the record")
      ->check(CLI::Range(1, 9));
  app.add_flag("--no-fence{false}", simulation.fence, "keepers do not end agents that stand still");
  app.add_flag("-v", verbose, "tell all that happens");
  app.add_option("--digests", digests, "print the digests of so many histories");
  int stands = -1;
  int for_ms = 0;
  int loss_limit = 30;
  bool in_preflight = false;
  app.add_option(
         "--stands", stands,
         "one stands still once: 0 an agent, 1 a keeper, 2 both, 3 a node, 4 the rendezvous; 5: a "
         "node loses its power; 6: all nodes but the host, 7: all; 8: a link is down and up; 9: a "
         "node is cut off and stands still twice")
      ->check(CLI::Range(0, 9));
  app.add_option("--for-ms", for_ms, "so long");
  app.add_option("--loss-limit", loss_limit, "with --stands, in seconds");
  app.add_flag("--in-preflight", in_preflight, "with --stands: while a round is checked");
  bool of_host = false;
  int after_ms = -1;
  app.add_flag("--voters", simulation.voters, "with --stands: the nodes keep the record");
  app.add_flag("--of-host", of_host, "with --voters: it is that of the leading node");
  app.add_option("--after-ms", after_ms, "with --stands: so long after the first such moment");
  CLI11_PARSE(app, argc, argv);
  if (stands >= 0) {
    simulation.standstill = {static_cast<hlaunch::StandstillScene::Who>(stands),
                             std::chrono::seconds(loss_limit), std::chrono::milliseconds(for_ms),
                             in_preflight, of_host};
    if (after_ms >= 0) simulation.standstill->after = std::chrono::milliseconds(after_ms);
  }
  if (digests > 0) {
    bool good = true;
    for (; digests > 0; --digests, ++simulation.seed) good &= hlaunch::PrintDigest(simulation);
    return good ? 0 : 1;
  }
  if (verbose) simulation.trace = [](const std::string& line) { std::puts(line.c_str()); };
  const hlaunch::SimulationResult result = hlaunch::Simulate(simulation);
  std::printf("%llu steps, %llu agents, %llu rounds, %llu restarts, %llu records, %llu restores, ",
              static_cast<unsigned long long>(result.steps),
              static_cast<unsigned long long>(result.agents),
              static_cast<unsigned long long>(result.rounds),
              static_cast<unsigned long long>(result.job_restarts),
              static_cast<unsigned long long>(result.records),
              static_cast<unsigned long long>(result.restores));
  std::printf("exit code %d\n", result.outcome);
  if (result.violation.empty()) return 0;
  std::printf("VIOLATION: %s\n", result.violation.c_str());
  return 1;
}
