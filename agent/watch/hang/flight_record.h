// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/record/recorded_calls.h"
#include "rendezvous/round/hang/rank_snapshot.h"

// Reads what a rank has called, from the answers of torch's control server and from the records of
// hlaunch's own collectives. Pure: a worker may have influenced both.

namespace hlaunch {

// The content of a rank's flight recorder. A value.
struct FlightRecord {
  std::vector<GroupSnapshot> groups;  // Each with its last few collectives.
  bool in_p2p = false;                // A call to a single other rank is unfinished.
  bool device_in_p2p = false;         // The same, of a device: the rank itself may have gone on.
  int64_t calls = 0;                  // The number of the last call, from 0.
};

// Parses a flight recorder's JSON. Unset if `json` is something else.
std::optional<FlightRecord> ParseFlightRecord(absl::string_view json);

// Returns the questions that a control server answers with a flight record, by the JSON list of
// its handlers. Each kind of backend has its own recorder: fr_trace_json is gloo's, and NCCL's is
// dump_nccl_trace_json up to torch 2.14. If `handlers` is no list, only the first is asked.
std::vector<std::string> RecorderQuestions(absl::string_view handlers);

// The tap's own handler: tells how many collectives each group on CPUs has called. It needs the
// interpreter's lock, and does not count messages.
inline constexpr absl::string_view kProgressHandler = "hlaunch_progress";

// Returns the question that a control server with these handlers answers with the state of a record
// instead of the `whole`; empty if there is none.
std::string BriefQuestion(absl::string_view whole, absl::string_view handlers);

// Returns a part of `json` that changes with every collective and is found without parsing the
// rest.
absl::string_view FlightProgress(absl::string_view json);

// A process group as Python knows it. A value.
struct KnownGroup {
  std::vector<Rank> members;
  std::string description;  // May be empty.
};

// The groups by their names, as the tap reports them. Empty if there are none.
std::map<std::string, KnownGroup> ParseGroups(absl::string_view json);

// What a rank has called in groups of hlaunch's own collectives, of which torch's flight recorder
// knows nothing, or at most that calls have begun. A value.
struct OwnCalls {
  std::vector<GroupSnapshot> groups;
  bool in_p2p = false;   // A thread waits for a message from or to a single rank.
  int64_t calls = 0;     // How many collectives it has called.
  std::string progress;  // Changes with every collective.
};

// A group that torch.distributed knows gets a name that TorchName takes apart.
OwnCalls OwnCallsOf(const std::vector<RecordedCalls>& records);

// Torch's name for the group of a snapshot, whichever recorder it comes from.
absl::string_view TorchName(absl::string_view snapshot);

// True if wait_counter_values says that the rank waits for the master store.
bool WaitsForStore(absl::string_view json);

}  // namespace hlaunch
