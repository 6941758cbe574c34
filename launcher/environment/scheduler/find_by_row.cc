// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Systems whose variables alone tell a node's place; see system_row.h.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/printable.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

std::vector<std::string> HostsOf(const std::string& list) {
  return absl::StrSplit(list, absl::ByAnyChar(",; \t\r\n"), absl::SkipEmpty());
}

bool IsProven(const SystemRow& row, const Environment& environment) {
  for (const std::string& names : row.proof) {
    if (FirstSet(environment, names).value.empty()) return false;
  }
  for (const std::string& name : row.absent) {
    if (!environment.Get(name).empty()) return false;
  }
  return true;
}

// Returns the number of nodes that the system says, or else of the hosts that it names; -1:
// neither.
int CountNodes(const Variable& nnodes, const std::vector<std::string>& hosts) {
  if (!nnodes.value.empty()) return IntFrom(nnodes.value, 1, kMaxNodes);
  return hosts.size() > 1 && hosts.size() <= kMaxNodes ? static_cast<int>(hosts.size()) : -1;
}

// Says why several processes on this node cannot be used; empty: there is one process.
std::string SeveralHere(const SystemRow& row, const Environment& environment, int nodes) {
  const Variable local = FirstSet(environment, row.local_size),
                 all = FirstSet(environment, row.tasks);
  const int here = IntFrom(local.value, 2, kMaxNodes);
  const bool more = nodes > 0 && IntFrom(all.value, nodes + 1, 1 << 30) > 0;
  if (here < 0 && !more) return "";
  return absl::StrCat(
      here > 0 ? absl::StrCat(here, " processes were started on this node (", local.name, ")")
               : absl::StrCat(PrintableLine(all.value), " processes (", all.name,
                              ") were started on ", nodes, " nodes"),
      " and hlaunch is started once in each, where it starts all workers: ",
      row.once_a_node.empty() ? "start one on each node" : row.once_a_node,
      "; for a job of its own in every process add --standalone");
}

void AddMeeting(const SystemRow& row, const Surroundings& surroundings,
                const std::vector<std::string>& hosts, ClusterPlace& place) {
  const Environment& environment = surroundings.environment;
  const Variable list = FirstSet(environment, row.hosts), port = FirstSet(environment, row.port);
  const int chosen = IntFrom(port.value, 1, 65535);
  if (hosts.empty() && row.hosts_unset_is_here) {
    place.Add("--rdzv-endpoint", absl::StrCat(surroundings.host, ":", kDefaultRdzvPort), list.name,
              "not set, so this is the first node");
    return;
  }
  if (hosts.empty()) return;
  const auto endpoint = ParseEndpoint(hosts[0], kDefaultRdzvPort);
  if (!endpoint.ok()) return;
  place.Add("--rdzv-endpoint",
            absl::StrCat(endpoint->host, ":", chosen > 0 ? chosen : kDefaultRdzvPort), list.name,
            "the first node");
}

}  // namespace

ClusterPlace FindByRow(const SystemRow& row, const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  if (!IsProven(row, environment)) return {};
  const Variable nnodes = FirstSet(environment, row.nnodes), rank = FirstSet(environment, row.rank);
  const std::vector<std::string> hosts = HostsOf(FirstSet(environment, row.hosts).value);
  const int nodes = CountNodes(nnodes, hosts);
  const int index = IntFrom(rank.value, 0, (nodes > 0 ? nodes : kMaxNodes) - 1);
  ClusterPlace place;
  place.cluster = row.word;
  place.reason = absl::StrCat(row.title, " (", absl::StrJoin(row.proof, ", "), ")");
  if (row.rank.empty() || index < 0 || (nodes < 0 && !nnodes.value.empty())) {
    return RefusedPlace(
        row.word,
        absl::StrCat(
            "this is ", place.reason, ", and ",
            row.rank.empty()
                ? "no variable says which one"
                : absl::StrCat(rank.name, " '", PrintableLine(rank.value), "' of ", nnodes.name,
                               " '", PrintableLine(nnodes.value), "' is no node's number"),
            "; give --nnodes, --node-rank and --rdzv-endpoint, or --nnodes 1 for this "
            "node alone"));
  }
  if (const std::string why = SeveralHere(row, environment, nodes); !why.empty()) {
    // Without local_size every process of the job meets this error, and one of them tells it.
    return RefusedTask(row.word, why, row.local_size.empty() ? rank.value : "");
  }
  if (nodes > 0) {
    place.Add("--nnodes", absl::StrCat(nodes),
              nnodes.value.empty() ? FirstSet(environment, row.hosts).name : nnodes.name,
              nnodes.value.empty() ? "hosts in the list" : "nodes of the job");
  }
  place.Add("--node-rank", absl::StrCat(index), rank.name, "this node's number");
  AddMeeting(row, surroundings, hosts, place);
  const Variable id = FirstSet(environment, row.id), nproc = FirstSet(environment, row.nproc);
  if (!id.value.empty()) place.Add("--rdzv-id", PrintableLine(id.value), id.name, "the job's id");
  if (IntFrom(nproc.value, 1, kMaxNodes) > 0) {
    place.Add("--nproc-per-node", nproc.value, nproc.name, "a worker for each device of this node");
  }
  place.no_endpoint = absl::StrCat(
      "this is ", place.reason, ", and no variable names the first node: add --rdzv-endpoint ",
      row.first_node.empty() ? "HOST, with the first node's name" : row.first_node);
  const std::string lone = absl::StrCat(
      "this is ", row.title, ", number ", index, " (", rank.name,
      "), and no variable says how many ",
      "there are: add --nnodes N for one job of all, or --nnodes 1 for this node alone");
  (index > 0 ? place.needs_nnodes : place.no_nnodes) = lone;
  return place;
}

}  // namespace hlaunch
