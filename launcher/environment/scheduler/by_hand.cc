// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The variables that users, and services such as AzureML, MosaicML and PAI, set on every node:
// MASTER_ADDR, this node's number and the number of nodes.

#include <climits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/printable.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

constexpr char kNodeCounts[] = "NNODES|NUM_NODES|AZUREML_NODE_COUNT";
constexpr char kNodeRank[] = "NODE_RANK";
constexpr char kPerNode[] = "NPROC_PER_NODE|LOCAL_WORLD_SIZE";

// This node's number and the number of nodes. Without NODE_RANK, RANK and WORLD_SIZE count nodes,
// unless LOCAL_RANK shows that they count workers.
struct Numbers {
  Variable rank, nodes;
  int count = -1;  // -1: unknown.
};

Numbers ReadNumbers(const Environment& environment) {
  Numbers numbers{{kNodeRank, environment.Get(kNodeRank)}, FirstSet(environment, kNodeCounts)};
  const Variable world{"WORLD_SIZE", environment.Get("WORLD_SIZE")};
  const bool counts_nodes = numbers.rank.value.empty() && environment.Get("LOCAL_RANK").empty();
  if (counts_nodes) numbers.rank = {"RANK", environment.Get("RANK")};
  if (counts_nodes && numbers.nodes.value.empty()) numbers.nodes = world;
  numbers.count = IntFrom(numbers.nodes.value, 1, kMaxNodes);
  if (numbers.count > 0) return numbers;
  const int workers = IntFrom(world.value, 1, 1 << 30);
  const int here = IntFrom(FirstSet(environment, kPerNode).value, 1, kMaxNodes);
  if (workers > 0 && here > 0 && workers % here == 0) {
    numbers.nodes = world;
    numbers.count = workers / here;
  }
  return numbers;
}

bool IsHere(const std::string& address) {
  return address == "localhost" || IsLoopbackLiteral(address);
}

// Makes a place from MASTER_ADDR alone. The variable may be left over, so it counts only if the
// user says that there are several nodes, which then agree on their ranks themselves.
ClusterPlace FromAddress(const std::string& address, const std::string& port) {
  ClusterPlace place;
  if (address.empty() || IsHere(address)) return place;
  place.cluster = "env";
  place.reason = "MASTER_ADDR, which counts where --nnodes says that there are several nodes";
  if (!port.empty() && IntFrom(port, 1, 65535) < 0) {
    place.no_endpoint =
        absl::StrCat("MASTER_PORT '", PrintableLine(port), "': expected 1 to 65535");
    return place;
  }
  place.Add("--master-addr", address, "MASTER_ADDR", "the first node");
  if (!port.empty()) place.Add("--master-port", port, "MASTER_PORT", "of the first node");
  return place;
}

// Makes a place from a node's number if nothing says where the nodes meet.
ClusterPlace WithoutAddress(const Numbers& numbers, int rank) {
  ClusterPlace place;
  place.cluster = "env";
  place.reason = absl::StrCat(numbers.rank.name, " is set, and MASTER_ADDR is not");
  if (numbers.count > 0) {
    place.Add("--nnodes", absl::StrCat(numbers.count), numbers.nodes.name, "nodes of the job");
  }
  place.Add("--node-rank", absl::StrCat(rank), numbers.rank.name, "this node's number");
  place.no_endpoint = absl::StrCat(
      numbers.rank.name, " is ", rank, ", as for one job of several nodes, and nothing says where ",
      "they meet: set MASTER_ADDR to the first node's name on all of them, or add ",
      "--rdzv-endpoint HOST, or --nnodes 1 for this node alone");
  if (rank > 0) place.needs_nnodes = place.no_endpoint;
  return place;
}

std::string WrongNumber(const Numbers& numbers) {
  const std::string of_all =
      numbers.count > 0 ? absl::StrCat(" of ", numbers.count, " (", numbers.nodes.name, ")") : "";
  return absl::StrCat(numbers.rank.name, " '", PrintableLine(numbers.rank.value),
                      "' is no node's number", of_all,
                      "; correct it, or give --nnodes 1 for this node alone");
}

// The variables that nodes of one job lack, for a sentence; empty: they have all.
std::string MissingOfNodes(const Environment& environment) {
  const std::string address = environment.Get("MASTER_ADDR");
  std::vector<std::string> missing;
  if (address.empty()) missing.emplace_back("MASTER_ADDR");
  if (IsHere(address)) missing.emplace_back("MASTER_ADDR to the first node's name");
  if (environment.Get(kNodeRank).empty()) missing.emplace_back(kNodeRank);
  return absl::StrJoin(missing, " and ");
}

}  // namespace

// The first two variables are those of launchers. A process that has a LOCAL_RANK and no node's
// number is a worker as well.
bool IsInWorker(const Environment& environment) {
  return !environment.Get("TORCHELASTIC_RUN_ID").empty() || !environment.Get(kEnvJobId).empty() ||
         (!environment.Get("LOCAL_RANK").empty() && environment.Get(kNodeRank).empty());
}

std::string CountAlone(const Environment& environment, int ranks) {
  if (IsInWorker(environment)) return "";
  const Variable nodes = FirstSet(environment, kNodeCounts);
  const Variable world{"WORLD_SIZE", environment.Get("WORLD_SIZE")};
  const bool counts_nodes = IntFrom(nodes.value, 2, kMaxNodes) > 0;
  if (!counts_nodes && IntFrom(world.value, ranks + 1, INT_MAX) < 0) return "";
  const Variable& alone = counts_nodes ? nodes : world;
  const std::string missing = MissingOfNodes(environment);
  return absl::StrCat(alone.name, " is ", PrintableLine(alone.value),
                      ", and this is a job of one node with ", ranks,
                      ranks == 1 ? " rank" : " ranks", ": for several nodes ",
                      missing.empty() ? "" : absl::StrCat("set ", missing, ", or "),
                      "write --nnodes ", counts_nodes ? PrintableLine(alone.value) : "N",
                      " --rdzv-endpoint HOST on each; --nnodes 1 says that one is meant");
}

ClusterPlace FindByHand(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const std::string address = environment.Get("MASTER_ADDR");
  const std::string port = environment.Get("MASTER_PORT");
  const Numbers numbers = ReadNumbers(environment);
  if (!told && (IsInWorker(environment) || !environment.Get("PET_NNODES").empty())) return {};
  if (numbers.rank.value.empty()) return FromAddress(address, port);
  // Only NODE_RANK certainly counts nodes. RANK may be left over from a test of a script.
  const bool of_node = numbers.rank.name == kNodeRank;
  const bool elsewhere = !address.empty() && !IsHere(address);
  if (!told && (numbers.count == 1 || (!of_node && !elsewhere))) return {};
  const int rank = IntFrom(numbers.rank.value, 0, kMaxNodes - 1);
  if (rank < 0 || (numbers.count > 0 && rank >= numbers.count)) {
    return RefusedPlace("env", WrongNumber(numbers));
  }
  if (address.empty()) return WithoutAddress(numbers, rank);
  if (!port.empty() && IntFrom(port, 1, 65535) < 0) {
    return RefusedPlace("env", absl::StrCat("MASTER_PORT '", PrintableLine(port),
                                            "': expected 1 to 65535; correct it, or give ",
                                            "--nnodes 1 for this node alone"));
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
  if (!port.empty()) place.Add("--master-port", port, "MASTER_PORT", "of the first node");
  const Variable here = FirstSet(environment, kPerNode);
  if (IntFrom(here.value, 1, kMaxNodes) > 0) {
    place.Add("--nproc-per-node", here.value, here.name, "workers of this node");
  }
  if (IsHere(address)) {
    place.warnings.push_back(absl::StrCat("MASTER_ADDR is ", PrintableLine(address),
                                          ", where only nodes on this host meet; set it to the ",
                                          "first node's name if they are on several"));
  }
  // If node 0 names itself, it may be the only node.
  if (rank == 0 && !elsewhere) return place;
  place.needs_nnodes =
      absl::StrCat("MASTER_ADDR is ", PrintableLine(address), " and ", numbers.rank.name, " is ",
                   rank, ", as for one job of several nodes, and nothing says how many there are: ",
                   "add --nnodes N, or --nnodes 1 for this node alone, or --cluster none");
  return place;
}

}  // namespace hlaunch
