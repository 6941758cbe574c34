// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/launcher_settings.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/mpirun/placement.h"
#include "launcher/cli/mpirun/take_words.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

// The frameworks of mpirun itself and of its parts. Their parameters mean nothing to ranks.
constexpr const char* kOfMpirunItself[] = {"orte_",  "orted_",  "prte_",   "plm_",    "rmaps_",
                                           "ras_",   "odls_",   "oob_",    "iof_",    "grpcomm_",
                                           "ess_",   "state_",  "errmgr_", "routed_", "rml_",
                                           "filem_", "schizo_", "sstore_", "snapc_"};

struct Setting {
  const char* names;  // All that mean the same, "a|b".
  absl::Status (*take)(const std::string& value, MpirunLine& line);
};

using TakeWordFn = absl::Status (*)(absl::Span<const std::string> values, MpirunLine& line);

// Takes the value as that of a word.
template <TakeWordFn take>
absl::Status As(const std::string& value, MpirunLine& line) {
  return take(absl::MakeConstSpan(&value, 1), line);
}

absl::Status TakeRankfileName(const std::string& value, MpirunLine& line) {
  line.rankfile = value;
  return absl::OkStatus();
}

// "ssh : rsh" are several, of which the first counts.
absl::Status TakeShell(const std::string& value, MpirunLine& line) {
  const std::vector<std::string> shells = absl::StrSplit(value, ':');
  const std::string first(absl::StripAsciiWhitespace(shells.front()));
  line.shell = first == "ssh" ? "" : first;
  return absl::OkStatus();
}

absl::Status TakeVariables(const std::string& value, MpirunLine& line) {
  for (const string_view each : absl::StrSplit(value, ';', absl::SkipWhitespace())) {
    const std::string variable(absl::StripAsciiWhitespace(each));
    HLAUNCH_RETURN_IF_ERROR(As<TakeVariable>(variable, line));
  }
  return absl::OkStatus();
}

absl::Status TakePprPattern(const std::string& value, MpirunLine& line) {
  return As<TakeMapBy>(absl::StrCat("ppr:", value), line);
}

absl::Status TakePerSocket(const std::string& value, MpirunLine& line) {
  return As<TakeMapBy>(absl::StrCat("ppr:", value, ":socket"), line);
}

bool IsOff(const std::string& value) { return value == "0" || value == "false" || value == "no"; }

absl::Status TakeOnePerNode(const std::string& value, MpirunLine& line) {
  return IsOff(value) ? absl::OkStatus() : As<TakePerNode>("1", line);
}

absl::Status TakeByNode(const std::string& value, MpirunLine& line) {
  return IsOff(value) ? absl::OkStatus() : As<TakeMapBy>("node", line);
}

absl::Status TakeOversubscribe(const std::string& value, MpirunLine& line) {
  line.oversubscribes = !IsOff(value);
  return absl::OkStatus();
}

absl::Status RefusePlace(const std::string& value, MpirunLine&) {
  if (IsOff(value)) return absl::OkStatus();
  return InvalidArgumentError(
      "it says where ranks run, and hlaunch has nothing of the kind; leave it out, and write "
      "--hosts, -N or --bind-to");
}

const Setting kMcaParameters[] = {
    {"orte_default_hostfile|prte_default_hostfile", As<TakeHostfile>},
    {"orte_default_dash_host|prte_default_dash_host", As<TakeHosts>},
    {"orte_rankfile|prte_rankfile|rmaps_rank_file_path", TakeRankfileName},
    {"plm_rsh_agent|plm_ssh_agent|orte_rsh_agent", TakeShell},
    {"plm_rsh_args|plm_ssh_args", As<TakeShellArguments>},
    {"mca_base_env_list", TakeVariables},
    {"rmaps_base_mapping_policy|rmaps_default_mapping_policy", As<TakeMapBy>},
    {"rmaps_base_ranking_policy|rmaps_default_ranking_policy", As<TakeRankBy>},
    {"hwloc_base_binding_policy|hwloc_default_binding_policy", As<TakeBindTo>},
    {"rmaps_base_n_pernode|rmaps_ppr_n_pernode", As<TakePerNode>},
    {"rmaps_base_pernode|rmaps_ppr_pernode", TakeOnePerNode},
    {"rmaps_base_n_persocket|rmaps_ppr_n_persocket", TakePerSocket},
    {"rmaps_base_pattern|rmaps_ppr_pattern", TakePprPattern},
    {"rmaps_base_bynode", TakeByNode},
    {"rmaps_base_oversubscribe", TakeOversubscribe},
    {"rmaps_base_no_schedule_local|rmaps_dist_device|hwloc_base_cpu_list|hwloc_base_cpu_set|"
     "hwloc_base_slot_list|mca_base_env_list_delimiter",
     RefusePlace},
};

const Setting kHydraVariables[] = {
    {"HYDRA_HOST_FILE|I_MPI_HYDRA_HOST_FILE", As<TakeHostfile>},
    {"HYDRA_LAUNCHER_EXEC|HYDRA_BOOTSTRAP_EXEC|I_MPI_HYDRA_BOOTSTRAP_EXEC", TakeShell},
    // Kubeflow's MPI operator writes the second one for MPICH.
    {"HYDRA_LAUNCHER_EXTRA_ARGS|HYDRA_LAUNCH_EXTRA_ARGS|"
     "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
     As<TakeShellArguments>},
    {"I_MPI_PERHOST",
     [](const std::string& value, MpirunLine& line) {
       const bool number = value.find_first_not_of("0123456789") == std::string::npos;
       return number ? As<TakePerRound>(value, line) : absl::OkStatus();  // "all", "allcores"
     }},
};

// These choose the way to hosts, so they count only where other hosts are named.
constexpr const char* kHydraLaunchers[] = {"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP",
                                           "I_MPI_HYDRA_BOOTSTRAP"};

absl::Status Take(const Setting& setting, string_view prefix, const Environment& environment,
                  MpirunLine& line) {
  for (const string_view name : absl::StrSplit(setting.names, '|')) {
    const std::string variable = absl::StrCat(prefix, name);
    const std::string value = environment.Get(variable);
    if (value.empty()) continue;
    const bool by_node = !line.by_node.empty();
    const absl::Status taken = setting.take(value, line);
    if (!taken.ok()) {
      return InvalidArgumentError(
          absl::StrCat(variable, " '", PrintableLine(value), "': ", taken.message()));
    }
    if (!by_node && !line.by_node.empty()) line.by_node = variable;  // An error names it so.
  }
  return absl::OkStatus();
}

// Puts a parameter into `line` if it says where ranks run or how hosts are reached; returns whether
// it does.
absl::StatusOr<bool> TakeMcaParameter(string_view name, const std::string& value,
                                      MpirunLine& line) {
  for (const Setting& setting : kMcaParameters) {
    const std::vector<string_view> names = absl::StrSplit(setting.names, '|');
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    HLAUNCH_RETURN_IF_ERROR(setting.take(value, line));
    return true;
  }
  return false;
}

bool SaysHosts(const MpirunLine& line) {
  return !line.hosts.empty() || !line.hostfile.empty() || !line.rankfile.empty();
}

void TakeWhereOpen(const MpirunLine& found, MpirunLine& line) {
  if (!SaysHosts(line)) {
    line.hosts = found.hosts;
    line.hostfile = found.hostfile;
    line.rankfile = found.rankfile;
  }
  if (line.shell.empty()) {
    line.shell = found.shell;
    line.shell_is_default = true;
  }
  if (line.shell_arguments.empty()) line.shell_arguments = found.shell_arguments;
  if (line.per_node.empty() && !line.says_map) {
    line.per_node = found.per_node;
    line.goes_round = found.goes_round;
    line.per_object = found.per_object;
  }
  if (line.by_node.empty() && !line.says_map) {
    line.by_node = found.by_node;
    line.maps_by_node = found.maps_by_node;
  }
  if (!line.oversubscribes.has_value()) line.oversubscribes = found.oversubscribes;
  if (line.bind.empty() && line.cores.empty()) {
    line.bind = found.bind;
    line.cores = found.cores;
  }
  line.words.insert(line.words.begin(), found.words.begin(), found.words.end());
}

}  // namespace

absl::Status TakeMca(absl::Span<const std::string> values, MpirunLine& line) {
  const std::string& name = values[0];
  HLAUNCH_ASSIGN_OR_RETURN(const bool taken, TakeMcaParameter(name, values[1], line));
  if (taken) return absl::OkStatus();
  for (const char* prefix : kOfMpirunItself) {
    if (absl::StartsWith(name, prefix)) return ChangesNothing(absl::StrCat("--mca ", name), line);
  }
  line.words.insert(line.words.end(), {"-x", absl::StrCat("OMPI_MCA_", name, "=", values[1])});
  return absl::OkStatus();
}

absl::Status TakeForeignMca(absl::Span<const std::string> values, MpirunLine& line) {
  HLAUNCH_ASSIGN_OR_RETURN(const bool taken, TakeMcaParameter(values[0], values[1], line));
  return taken ? absl::OkStatus() : ChangesNothing(values[0], line);
}

absl::Status TakeFileParameters(absl::Span<const FileParameter> parameters, MpirunLine& line) {
  MpirunLine found;
  for (const FileParameter& parameter : parameters) {
    const bool by_node = !found.by_node.empty();
    const std::string what = absl::StrCat(parameter.file, ": ", parameter.name);
    const absl::StatusOr<bool> taken = TakeMcaParameter(parameter.name, parameter.value, found);
    if (!taken.ok()) {
      return InvalidArgumentError(absl::StrCat(PrintableLine(what), " '",
                                               PrintableLine(parameter.value),
                                               "': ", taken.status().message()));
    }
    if (!by_node && !found.by_node.empty()) found.by_node = what;
  }
  TakeWhereOpen(found, line);
  return absl::OkStatus();
}

absl::Status TakeLauncherVariables(const Environment& environment, MpirunLine& line) {
  MpirunLine found;
  for (const char* prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {
    for (const Setting& setting : kMcaParameters) {
      HLAUNCH_RETURN_IF_ERROR(Take(setting, prefix, environment, found));
    }
  }
  for (const Setting& setting : kHydraVariables) {
    HLAUNCH_RETURN_IF_ERROR(Take(setting, "", environment, found));
  }
  TakeWhereOpen(found, line);
  for (const char* variable : kHydraLaunchers) {
    const std::string value = environment.Get(variable);
    if (value.empty() || !SaysHosts(line) || !line.shell.empty()) continue;
    const absl::Status taken = As<TakeLauncher>(value, line);
    if (taken.ok()) continue;
    return InvalidArgumentError(
        absl::StrCat(variable, " '", PrintableLine(value), "': ", taken.message()));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
