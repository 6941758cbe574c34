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

// How a verb is carried out; the files in collectives/ say what each algorithm costs.
enum class Algorithm : uint8_t {
  kFlat,               // Each rank with every other, or with the root, in one step.
  kTree,               // Binomial; log n steps.
  kBruck,              // A gather in log n steps.
  kExchange,           // all_reduce: each rank gets all inputs and reduces them itself.
  kDirect,             // all_reduce, reduce: each rank reduces a part, then the parts are gathered.
  kRing,               // n - 1 steps between neighbours.
  kRecursiveDoubling,  // log n steps, each with all data.
  kScatterGather,      // broadcast: each rank gets a part, then all exchange parts.
  kTwoLevel,           // Inside hosts, between hosts, inside hosts.
};
absl::string_view Name(Algorithm algorithm);

// What the choice of an algorithm depends on; the same at all ranks.
struct Shape {
  int size = 1;
  int hosts = 1;
  int per_host = 1;  // 0 if it differs between hosts.
};

// Algorithms by verb that replace the choice of the table; for experiments.
using AlgorithmChoices = std::map<Verb, Algorithm>;

// Reads HLAUNCH_COMM_<VERB>=<algorithm>, such as HLAUNCH_COMM_ALL_REDUCE=ring.
//
// Errors:
//   InvalidArgument - the verb has no such algorithm; the message lists those that it has.
absl::StatusOr<AlgorithmChoices> ChoicesFromEnvironment();

// Chooses by the table. `bytes` is the size of one rank's data. Pure.
Algorithm Choose(Verb verb, size_t bytes, const Shape& shape, const AlgorithmChoices& choices = {});

// From this size on the choice may depend on the hosts.
inline constexpr size_t kHostsMatter = 4096;

}  // namespace hlaunch
