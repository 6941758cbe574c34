// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/call/call.h"

namespace hlaunch {

// How a verb is done; the files in collectives/ say what each costs.
enum class Algorithm : uint8_t {
  kFlat,               // Everyone with everyone, or with the root, at once.
  kTree,               // Binomial; log n steps.
  kBruck,              // Gathers in log n steps.
  kExchange,           // all_reduce: everyone gets all inputs and reduces them itself.
  kDirect,             // all_reduce, reduce: everyone reduces a part, then parts are gathered.
  kRing,               // n - 1 steps among neighbours.
  kRecursiveDoubling,  // log n steps with everything.
  kScatterGather,      // broadcast: parts to all, then everyone with everyone.
  kTwoLevel,           // Inside hosts, between hosts, inside hosts.
};
absl::string_view Name(Algorithm algorithm);

// What a choice depends on: the same on all ranks.
struct Shape {
  int size = 1;
  int hosts = 1;
  int per_host = 1;  // 0: they differ.
};

// What to take whatever the table says, by verb; for experiments.
using AlgorithmChoices = std::map<Verb, Algorithm>;

// From HLAUNCH_COMM_<VERB>=<algorithm>, such as HLAUNCH_COMM_ALL_REDUCE=ring.
//
// Errors:
//   InvalidArgument - no such algorithm for that verb; the message lists those there are.
absl::StatusOr<AlgorithmChoices> ChoicesFromEnvironment();

// The table. `bytes`: of one rank's share. Pure.
Algorithm Choose(Verb verb, size_t bytes, const Shape& shape, const AlgorithmChoices& choices = {});

// From this many bytes on the choice may depend on hosts.
inline constexpr size_t kHostsMatter = 4096;

}  // namespace hlaunch
