// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_env.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/route.h"

namespace hlaunch {
namespace {

using Variables = std::vector<std::pair<absl::string_view, std::string>>;

absl::string_view NameOf(absl::string_view entry) { return entry.substr(0, entry.find('=')); }

// What is said of the worker's place; replaces what it inherits.
Variables Place(const Assignment& round, int local_rank, const WorkerSpec& spec,
                const NodeFacts& facts) {
  const std::string rank = absl::StrCat(round.first_rank + local_rank);
  const std::string world_size = absl::StrCat(round.world_size);
  const std::string local_size = absl::StrCat(spec.nproc);
  const std::string node_rank = absl::StrCat(round.node_rank);
  const std::string nodes = absl::StrCat(round.num_nodes);
  return {
      {kEnvRank, rank},
      {kEnvWorldSize, world_size},
      {kEnvLocalRank, absl::StrCat(local_rank)},
      {kEnvLocalWorldSize, local_size},
      {kEnvGroupRank, node_rank},
      {kEnvNodeRank, node_rank},
      {kEnvGroupWorldSize, nodes},
      {kEnvRoleName, spec.role},
      {kEnvRoleRank, rank},
      {kEnvRoleWorldSize, world_size},
      {kEnvMasterAddr, round.master_addr},
      {kEnvMasterPort, absl::StrCat(round.master_port)},
      {kEnvRunId, spec.job_id},
      {kEnvRestartCount, absl::StrCat(round.restart_count)},
      {kEnvMaxRestarts, absl::StrCat(round.max_restarts)},
      {kEnvUseAgentStore, round.worker_store ? "False" : "True"},  // Torch's exact words.
      {kEnvErrorFile, facts.error_file},
      {kEnvLocalSize, local_size},
      {kEnvCrossRank, node_rank},
      {kEnvCrossSize, nodes},
      {kEnvJaxNumProcesses, world_size},
      {kEnvJaxProcessId, rank},
      {kEnvJobId, spec.job_id},
      {kEnvEndpoint, facts.endpoint},
      {kEnvRound, absl::StrCat(round.round)},
      {kEnvLogDir, facts.log_dir},
  };
}

// What is set only where the user has not.
Variables Defaults(const Assignment& round, const WorkerSpec& spec, const NodeFacts& facts) {
  return {
      {kEnvTorchNcclAsync, "1"},
      {kEnvNcclAsync, "1"},
      {kEnvSignalsToHandle, "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {kEnvGlooInterface, round.num_nodes > 1 ? facts.gloo_interface : ""},
      {kEnvOmpThreads, absl::StrCat(std::max(1, facts.usable_cores / std::max(1, spec.nproc)))},
      {kEnvPythonUnbuffered, "1"},
      {kEnvJaxCoordinator,
       round.coordinator_port == 0 ? "" : HostPort(round.master_addr, round.coordinator_port)},
  };
}

bool Has(const Variables& variables, absl::string_view name) {
  return std::any_of(variables.begin(), variables.end(),
                     [name](const auto& v) { return v.first == name && !v.second.empty(); });
}

}  // namespace

bool IsInherited(absl::string_view name) {
  return std::find(std::begin(kScrubbedNames), std::end(kScrubbedNames), name) ==
             std::end(kScrubbedNames) &&
         std::none_of(std::begin(kScrubbedPrefixes), std::end(kScrubbedPrefixes),
                      [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

std::vector<std::string> WorkerEnv(const Assignment& assignment, int local_rank,
                                   const WorkerSpec& spec, const NodeFacts& facts) {
  const Variables place = Place(assignment, local_rank, spec, facts);
  Variables defaults = Defaults(assignment, spec, facts);
  std::vector<std::string> env;
  for (const std::string& entry : spec.inherited_env) {
    const absl::string_view name = NameOf(entry);
    if (name.empty() || name.size() == entry.size()) continue;  // No `NAME=value`.
    if (!IsInherited(name) || Has(place, name)) continue;
    env.push_back(entry);
    defaults.erase(std::remove_if(defaults.begin(), defaults.end(),
                                  [name](const auto& v) { return v.first == name; }),
                   defaults.end());
  }
  for (const Variables* variables : {&place, &std::as_const(defaults)}) {
    for (const auto& [name, value] : *variables) {
      if (!value.empty()) env.push_back(absl::StrCat(name, "=", value));
    }
  }
  return env;
}

std::string ChosenDefaults(const Assignment& assignment, const WorkerSpec& spec,
                           const NodeFacts& facts) {
  if (assignment.node_rank != 0 || assignment.round != 1 || assignment.world_size == 1) return "";
  std::vector<std::string> chosen;
  for (const auto& [name, value] : Defaults(assignment, spec, facts)) {
    if (name != kEnvOmpThreads && name != kEnvGlooInterface) continue;  // The rest changes nothing.
    const std::string prefix = absl::StrCat(name, "=");
    const bool given = std::any_of(
        spec.inherited_env.begin(), spec.inherited_env.end(),
        [&prefix](const std::string& entry) { return absl::StartsWith(entry, prefix); });
    if (!given && !value.empty()) chosen.push_back(absl::StrCat(prefix, value));
  }
  if (chosen.empty()) return "";
  return absl::StrCat("workers get ", absl::StrJoin(chosen, " and "),
                      "; set it to choose otherwise");
}

}  // namespace hlaunch
