// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/plan_fork_servers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "agent/workers/worker/worker_env.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

absl::string_view NameOf(absl::string_view entry) { return entry.substr(0, entry.find('=')); }

// Names of a rank's place in the round that IsInherited does not know. A later round has other
// values for them.
constexpr const char* kOfTheRound[] = {kEnvLocalSize,       kEnvCrossRank,    kEnvCrossSize,
                                       kEnvJaxNumProcesses, kEnvJaxProcessId, kEnvJaxCoordinator,
                                       kEnvNeuronRootComm,  kEnvTimerFile,    kEnvGlooInterface,
                                       kEnvSignalsToHandle};

// Variables that make Python, or a tool in it, do what a fork would not show.
constexpr const char* kUnfit[] = {"COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START",
                                  "PYTHONINSPECT",           "PYTHONPERFSUPPORT",
                                  "PYTHONPROFILEIMPORTTIME", "PYTHONVERBOSE"};

// These read, as Python starts, on which CPUs it may run.
constexpr const char* kPlaceThreads[] = {"GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES",
                                         "OMP_PROC_BIND"};

bool IsShared(absl::string_view name) {
  return IsInherited(name) &&
         std::find(std::begin(kOfTheRound), std::end(kOfTheRound), name) == std::end(kOfTheRound);
}

// The first variable of `env` that is set and one of `names`; null if there is none.
template <size_t n>
const char* FirstOf(const std::vector<std::string>& env, const char* const (&names)[n]) {
  for (const char* name : names) {
    const std::string start = absl::StrCat(name, "=");
    const bool set = std::any_of(env.begin(), env.end(), [&start](const std::string& entry) {
      return absl::StartsWith(entry, start) && entry.size() > start.size();
    });
    if (set) return name;
  }
  return nullptr;
}

void Share(const Command& rank, ForkServerPlan& plan, std::set<std::string>& unshared) {
  const std::set<absl::string_view> has(rank.env.begin(), rank.env.end());
  std::vector<std::string> shared;
  for (std::string& entry : plan.command.env) {
    if (has.count(entry) > 0 && IsShared(NameOf(entry))) {
      shared.push_back(std::move(entry));
    } else {
      unshared.emplace(NameOf(entry));
    }
  }
  for (const std::string& entry : rank.env) {
    if (std::find(shared.begin(), shared.end(), entry) == shared.end()) {
      unshared.emplace(NameOf(entry));
    }
  }
  plan.command.env = std::move(shared);
}

std::string WhyNot(const Command& rank, const PythonCall& call) {
  if (!call.why_not.empty()) return call.why_not;
  const char* const unfit = FirstOf(rank.env, kUnfit);
  return unfit == nullptr ? "" : absl::StrCat(unfit, " is set");
}

}  // namespace

std::string NamesOf(const Preload& preload) {
  return preload.automatic ? "auto" : absl::StrJoin(preload.modules, ",");
}

bool CanBecome(const ForkServerPlan& plan, const Command& rank) {
  return rank.argv == plan.command.argv && rank.memory_node == plan.command.memory_node &&
         rank.working_directory == plan.command.working_directory;
}

bool ForkServerPlan::IsServedBy(const ForkServerPlan& other) const {
  return CanBecome(other, command) && command.env == other.command.env &&
         command.cpus == other.command.cpus && preload.modules == other.preload.modules &&
         preload.automatic == other.preload.automatic;
}

ForkServerPlans PlanForkServers(const Preload& preload, const std::vector<Command>& ranks) {
  ForkServerPlans result;
  if (!preload.wanted()) return result;
  std::vector<std::set<std::string>> unshared;
  for (const Command& rank : ranks) {
    PythonCall call = ReadPythonCall(rank.argv);
    if (const std::string why = WhyNot(rank, call); !why.empty()) {
      result.why_not = why;
      continue;
    }
    const auto found =
        std::find_if(result.plans.begin(), result.plans.end(), [&rank](const ForkServerPlan& plan) {
          return plan.command.memory_node == rank.memory_node;
        });
    const auto index = static_cast<size_t>(found - result.plans.begin());
    if (found == result.plans.end()) {
      result.plans.push_back({rank, std::move(call), preload, {}, 1});
      unshared.emplace_back();
      Share(rank, result.plans.back(), unshared.back());
    } else if (!CanBecome(*found, rank)) {
      result.why_not = "the ranks' command lines differ";
    } else if (rank.cpus != found->command.cpus && FirstOf(rank.env, kPlaceThreads) != nullptr) {
      result.why_not = absl::StrCat(FirstOf(rank.env, kPlaceThreads),
                                    " is set, and the ranks are bound to different CPUs");
      result.plans.clear();
      return result;
    } else {
      ++found->ranks;
      std::vector<int>& cpus = found->command.cpus;
      cpus.insert(cpus.end(), rank.cpus.begin(), rank.cpus.end());
      std::sort(cpus.begin(), cpus.end());
      cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
      Share(rank, *found, unshared[index]);
    }
  }
  for (size_t i = 0; i < result.plans.size(); ++i) {
    result.plans[i].unshared.assign(unshared[i].begin(), unshared[i].end());
  }
  return result;
}

}  // namespace hlaunch
