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

// What torch's control server answers. Pure: text that a worker may have had a hand in.

namespace hlaunch {

// What a rank's flight recorder knows. A value.
struct FlightRecord {
  std::vector<GroupPicture> groups;  // With the last few collectives of each.
  bool in_p2p = false;               // A call to a single other rank is not over.
  int64_t calls = 0;                 // The number of the last, from 0.
};

// The flight recorder's JSON (fr_trace_json). Unset: it is none.
std::optional<FlightRecord> ParseFlightRecord(absl::string_view json);

// A part of it that changes with every collective and is found without reading the rest.
absl::string_view FlightProgress(absl::string_view json);

// The ranks of each group by its name, as the tap tells them. Empty: none are told.
std::map<std::string, std::vector<Rank>> ParseGroups(absl::string_view json);

// Whether wait_counter_values says that the rank waits for the master store.
bool WaitsForStore(absl::string_view json);

}  // namespace hlaunch
