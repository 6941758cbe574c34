// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// simulate --seed S --nodes N --steps K [-v]: one history of the simulator; -v tells it.

#include <cstdio>

#include "CLI/CLI.hpp"
#include "tests/rendezvous/simulator/simulator.h"

int main(int argc, char** argv) {
  hlaunch::Simulation simulation;
  bool verbose = false;
  CLI::App app("Runs one history of a simulated job.");
  app.add_option("--seed", simulation.seed);
  app.add_option("--nodes", simulation.nodes)->check(CLI::Range(1, 60000));
  app.add_option("--steps", simulation.steps);
  app.add_flag("-v", verbose, "tell all that happens");
  CLI11_PARSE(app, argc, argv);
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
