// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/hang/rank_picture.h"

// Parses the answers of torch's control server. Pure: a worker may have influenced the text.

namespace hlaunch {

// The content of a rank's flight recorder. A value.
struct FlightRecord {
  std::vector<GroupPicture> groups;  // Each with its last few collectives.
  bool in_p2p = false;               // A call to a single other rank is unfinished.
  bool device_in_p2p = false;        // The same, of a device: the rank itself may have gone on.
  int64_t calls = 0;                 // The number of the last call, from 0.
};

// Parses a flight recorder's JSON. Unset if `json` is something else.
std::optional<FlightRecord> ParseFlightRecord(absl::string_view json);

// Returns the questions that a control server answers with a flight record, by the JSON list of
// its handlers. Each kind of backend has its own recorder: fr_trace_json is gloo's, and NCCL's is
// dump_nccl_trace_json up to torch 2.14. If `handlers` is no list, only the first is asked.
std::vector<std::string> RecorderQuestions(absl::string_view handlers);

// Returns a part of `json` that changes with every collective and is found without parsing the
// rest.
absl::string_view FlightProgress(absl::string_view json);

// The ranks of each group by its name, as the tap reports them. Empty if there are none.
std::map<std::string, std::vector<Rank>> ParseGroups(absl::string_view json);

// True if wait_counter_values says that the rank waits for the master store.
bool WaitsForStore(absl::string_view json);

}  // namespace hlaunch
