// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/status/node_groups.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What a round did for a while, or what was done before it.
struct RoundPhase {
  enum class Kind { kGathering, kChecking, kRunning, kStopping };
  Kind kind = Kind::kGathering;
  int64_t from_ms = 0, to_ms = 0;  // Since 1970.
};

// A round in the time line.
struct RoundRow {
  std::string name;   // "3"; "next" for one that is to come.
  std::string began;  // "16:41:07"; empty: not known.
  std::string ran;    // "2 min 3 s"; empty: it did not.
  std::string took;   // From the end of the round before until this one ran; empty: not known.
  std::string size;   // "2 nodes, 16 ranks"
  std::string end;    // Why it ended; empty: it has not, or nobody said.
  bool current = false;
  std::vector<RoundPhase> phases;
};

struct Fact {
  std::string name, value;
};

// What nodes measured of themselves, for one figure.
struct FigureRow {
  std::string name, range;  // "memory speed", "11.2 to 12.9 GB/s"
  std::string odd;          // Who is far from the others; empty: nobody.
};

// What a person sees of a job's status, whatever shows it. All texts are printable: they may hold
// anything that a terminal does not obey, so also "<script>". A value.
struct StatusModel {
  std::string job;
  Light light = Light::kIdle;
  std::string state;     // One or two words: "running", "waiting for nodes".
  std::string sentence;  // What the job does, or whom it waits for.
  std::string title;     // For a tab: "2/2 running, train-17".
  std::string told;      // When that was so.
  std::vector<Fact> facts;
  std::vector<std::string> awaited;          // Who is, and since when, a line each.
  int64_t line_from_ms = 0, line_to_ms = 0;  // What the time line spans.
  std::vector<RoundRow> rounds;              // The latest first.
  NodeGroups nodes;
  std::string last_lines_of;  // Whose; empty: nobody failed.
  std::vector<std::string> last_lines;
  std::string log_file;             // Where there is more; empty: nowhere.
  std::vector<std::string> health;  // What checks found, a line each.
  std::vector<FigureRow> figures;
  std::vector<std::string> commands;  // To ask further.
};

// `how_to_ask`: the options that reach this rendezvous, for `commands`, as in "--rdzv-endpoint
// head"; empty: there are none. Pure.
StatusModel ModelOf(const JobStatus& status, const std::string& how_to_ask = "");

}  // namespace hlaunch
