// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What users, and services such as AzureML, MosaicML and PAI, set themselves on every node:
// MASTER_ADDR, this node's number and how many there are.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster/finders.h"
#include "launcher/words/endpoint.h"
#include "launcher/words/printable.h"
#include "rendezvous/round/round.h"

namespace hlaunch {
namespace {

struct Variable {
  const char* name = "";
  std::string value;
};

template <size_t kCount>
Variable First(const Environment& environment, const char* const (&names)[kCount]) {
  for (const char* name : names) {
    if (std::string value = environment.Get(name); !value.empty()) return {name, std::move(value)};
  }
  return {};
}

constexpr const char* kNodeCounts[] = {"NNODES", "NUM_NODES"};
constexpr const char* kNodeRanks[] = {"NODE_RANK"};
constexpr const char* kPerNode[] = {"NPROC_PER_NODE", "LOCAL_WORLD_SIZE"};

// Which node of how many. Without a node's own number, RANK and WORLD_SIZE count nodes, unless a
// LOCAL_RANK says that they count workers.
struct Numbers {
  Variable rank, nodes;
  int count = -1;  // -1: nothing says it.
};

Numbers ReadNumbers(const Environment& environment) {
  Numbers numbers{First(environment, kNodeRanks), First(environment, kNodeCounts)};
  const Variable world{"WORLD_SIZE", environment.Get("WORLD_SIZE")};
  const bool counts_nodes = numbers.rank.value.empty() && environment.Get("LOCAL_RANK").empty();
  if (counts_nodes) numbers.rank = {"RANK", environment.Get("RANK")};
  if (counts_nodes && numbers.nodes.value.empty()) numbers.nodes = world;
  numbers.count = IntFrom(numbers.nodes.value, 1, kMaxNodes);
  if (numbers.count > 0) return numbers;
  const int workers = IntFrom(world.value, 1, 1 << 30);
  const int here = IntFrom(First(environment, kPerNode).value, 1, kMaxNodes);
  if (workers > 0 && here > 0 && workers % here == 0) {
    numbers.nodes = world;
    numbers.count = workers / here;
  }
  return numbers;
}

// Within a worker of another launcher these are its own words.
bool IsWorker(const Environment& environment) {
  return !environment.Get("TORCHELASTIC_RUN_ID").empty();
}

}  // namespace

ClusterPlace FindByHand(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const std::string address = environment.Get("MASTER_ADDR");
  const Numbers numbers = ReadNumbers(environment);
  if (address.empty() || numbers.rank.value.empty()) return {};
  if (!told && (IsWorker(environment) || !environment.Get("PET_NNODES").empty() ||
                numbers.count == 1 || address == "localhost" || IsLoopbackLiteral(address))) {
    return {};
  }
  const int rank = IntFrom(numbers.rank.value, 0, kMaxNodes - 1);
  if (rank < 0 || (numbers.count > 0 && rank >= numbers.count)) {
    return RefusedPlace(
        "env", absl::StrCat(numbers.rank.name, " '", PrintableLine(numbers.rank.value),
                            "' is no node's number",
                            numbers.count > 0
                                ? absl::StrCat(" of ", numbers.count, " (", numbers.nodes.name, ")")
                                : "",
                            "; correct it, or give --nnodes 1 for this node alone"));
  }
  ClusterPlace place;
  place.cluster = "env";
  place.reason =
      absl::StrCat("variables of the environment (MASTER_ADDR, ", numbers.rank.name, ")");
  if (numbers.count > 0) {
    place.Add("--nnodes", absl::StrCat(numbers.count), numbers.nodes.name, "nodes of the job");
  }
  place.Add("--node-rank", absl::StrCat(rank), numbers.rank.name, "this node's number");
  place.Add("--master-addr", address, "MASTER_ADDR", "the first node");
  if (const std::string port = environment.Get("MASTER_PORT"); IntFrom(port, 1, 65535) > 0) {
    place.Add("--master-port", port, "MASTER_PORT", "of the first node");
  }
  const Variable here = First(environment, kPerNode);
  if (IntFrom(here.value, 1, kMaxNodes) > 0) {
    place.Add("--nproc-per-node", here.value, here.name, "workers of this node");
  }
  place.needs_nnodes =
      absl::StrCat("MASTER_ADDR is ", PrintableLine(address), " and ", numbers.rank.name, " is ",
                   rank, ", as for one job of several nodes, and nothing says how many there are: ",
                   "add --nnodes N, or --nnodes 1 for this node alone, or --cluster none");
  return place;
}

}  // namespace hlaunch
