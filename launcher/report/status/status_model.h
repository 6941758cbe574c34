// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/report/status/node_groups.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// A phase of a round, or of the time before it.
struct RoundPhase {
  enum class Kind { kGathering, kChecking, kRunning, kStopping };
  Kind kind = Kind::kGathering;
  int64_t from_ms = 0, to_ms = 0;  // Since 1970.
};

// A round in the time line.
struct RoundRow {
  std::string name;   // "3"; "next" for one that has not begun.
  std::string began;  // "16:41:07"; empty: unknown.
  std::string ran;    // "2 min 3 s"; empty if it did not run.
  std::string took;   // From the end of the former round until this one ran; empty: unknown.
  std::string size;   // "2 nodes, 16 ranks"
  std::string end;    // Why it ended; empty if it has not ended or the reason is unknown.
  bool current = false;
  std::vector<RoundPhase> phases;
};

struct Fact {
  std::string name, value;
};

// One figure that the nodes measured of themselves.
struct FigureRow {
  std::string name, range;  // "memory speed", "11.2 to 12.9 GB/s"
  std::string odd;          // The hosts far from the others; empty: none.
};

// What a person sees of a job's status, on any medium. All texts are printable: they may hold
// everything that does not control a terminal, so also "<script>". A value.
struct StatusModel {
  std::string job;
  Light light = Light::kIdle;
  std::string state;     // One or two words: "running", "waiting for nodes".
  std::string sentence;  // What the job does or waits for.
  std::string title;     // For a browser's tab: "2/2 running, train-17".
  std::string told;      // The time of this status.
  std::vector<Fact> facts;
  std::vector<std::string> awaited;          // The awaited nodes and since when, a line each.
  int64_t line_from_ms = 0, line_to_ms = 0;  // The span of the time line.
  std::vector<RoundRow> rounds;              // The latest first.
  NodeGroups nodes;
  std::string last_lines_of;  // The worker that failed; empty: none did.
  std::vector<std::string> last_lines;
  std::string log_file;             // The file with the whole log; empty: none.
  std::vector<std::string> health;  // The findings of checks, a line each.
  std::vector<FigureRow> figures;
  std::vector<std::string> commands;  // Commands that tell more.
};

// `how_to_ask`: the options that reach this rendezvous, as in "--rdzv-endpoint head". `commands`
// needs them and is empty without. Pure.
StatusModel ModelOf(const JobStatus& status, const std::string& how_to_ask = "");

}  // namespace hlaunch
