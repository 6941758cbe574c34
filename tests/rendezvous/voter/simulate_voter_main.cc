// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// simulate_voter --seed S --nodes N -v: runs one history of a group of voters and prints the
// promise it broke. simulate_voter … --histories M: runs M histories from seed S on until one
// breaks a promise, and prints their rate.

#include <chrono>
#include <cinttypes>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "proto/base/clock.h"
#include "tests/rendezvous/voter/voter_simulator.h"

int main(int argc, char** argv) {
  hlaunch::VoterSimulation simulation;
  bool verbose = false, continues = false, must_break = false;
  int trouble = 0;
  uint64_t histories = 1;
  CLI::App app("Runs histories of a simulated group of voters.");
  app.add_option("--seed", simulation.seed);
  app.add_option("--nodes", simulation.nodes)->check(CLI::Range(1, 100));
  app.add_option("--trouble", trouble, "0: all, 1: one follower's, 2: ten hosts die, 3: deaths")
      ->check(CLI::Range(0, 3));
  app.add_option("--histories", histories);
  app.add_flag("--continue", continues, "as with --on-host-loss continue");
  app.add_flag("--keeps-identity", simulation.keeps_identity);
  app.add_flag("--must-break", must_break, "succeed if a history breaks a promise");
  app.add_flag("-v", verbose, "tell all that happens");
  CLI11_PARSE(app, argc, argv);
  simulation.trouble = static_cast<hlaunch::VoterSimulation::Trouble>(trouble);
  if (continues) simulation.on_host_loss = hlaunch::OnHostLoss::kContinue;
  if (verbose) simulation.trace = [](const std::string& line) { std::puts(line.c_str()); };
  const hlaunch::Instant began = hlaunch::MonotonicClock().Now();
  uint64_t done = 0, events = 0;
  for (; done < histories; ++done, ++simulation.seed) {
    const hlaunch::VoterSimulationResult result = hlaunch::Simulate(simulation);
    events += result.events;
    if (result.violation.empty()) continue;
    std::printf("VIOLATION in history %" PRIu64 ": %s\nreplay it: %s\n", done + 1,
                result.violation.c_str(), hlaunch::ReplayCommand(simulation).c_str());
    return must_break ? 0 : 1;
  }
  const double took =
      std::chrono::duration<double>(hlaunch::MonotonicClock().Now() - began).count();
  std::printf("%" PRIu64 " histories, %" PRIu64 " events, %.0f histories a second\n", done, events,
              static_cast<double>(done) / took);
  return must_break ? 1 : 0;
}
