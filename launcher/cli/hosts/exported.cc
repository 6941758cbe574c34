// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/exported.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr const char* kNames[] = {
    "PATH",        "LD_LIBRARY_PATH", "LD_PRELOAD",    "PYTHONPATH", "PYTHONHOME",
    "VIRTUAL_ENV", "MODULEPATH",      "LOADEDMODULES", "LANG",       "TZ"};
constexpr const char* kPrefixes[] = {
    "CONDA_",        "PYTHON",      "LC_",   "NCCL_",     "RCCL_",   "HCCL_",        "CCL_",
    "GLOO_",         "UCX_",        "FI_",   "OMPI_MCA_", "TORCH",   "PYTORCH_",     "PT_",
    "HABANA_",       "CUDA_",       "HIP_",  "HSA_",      "ROCM_",   "XLA_",         "JAX_",
    "TF_",           "OMP_",        "GOMP_", "KMP_",      "MKL_",    "OPENBLAS_",    "HF_",
    "TRANSFORMERS_", "ACCELERATE_", "DS_",   "MEGATRON_", "TRITON_", "HLAUNCH_COMM_"};
// Name parts that mark a secret.
constexpr const char* kSecrets[] = {"TOKEN",   "SECRET",     "PASSW",  "CREDENTIAL",
                                    "API_KEY", "ACCESS_KEY", "PRIVATE"};
// Variables that concern only this host, this terminal or this session.
constexpr const char* kHere[] = {"HOME",  "USER", "LOGNAME", "SHELL",   "PWD",    "OLDPWD",
                                 "SHLVL", "_",    "TERM",    "DISPLAY", "TMPDIR", "HOSTNAME",
                                 "MAIL",  "TMUX", "STY",     "LINES",   "COLUMNS"};
constexpr const char* kHerePrefixes[] = {"SSH_", "XDG_",          "DBUS_",     "SLURM_",
                                         "PBS_", "LSB_",          "PMI_",      "PMIX_",
                                         "PET_", "TORCHELASTIC_", "BASH_FUNC_"};

bool StartsWithOne(string_view name, absl::Span<const char* const> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](const char* prefix) { return absl::StartsWith(name, prefix); });
}

bool IsOne(string_view name, absl::Span<const char* const> names) {
  return std::any_of(names.begin(), names.end(), [name](const char* each) { return name == each; });
}

bool IsOwn(string_view name) {
  return absl::StartsWith(name, kOwnPrefix) &&
         (!absl::StartsWith(name, kCommPrefix) || name == kEnvCommSecret);
}

bool IsSecret(string_view name) {
  return IsOwn(name) ||
         std::any_of(std::begin(kSecrets), std::end(kSecrets),
                     [name](string_view part) { return absl::StrContains(name, part); });
}

bool IsOfThisHost(string_view name) {
  return IsOne(name, kHere) || StartsWithOne(name, kHerePrefixes) ||
         absl::EndsWith(name, "_VISIBLE_DEVICES");
}

bool IsName(string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Whether --export sends `name` to the hosts.
bool Goes(string_view name, const std::string& exported, const std::vector<string_view>& listed) {
  if (IsSecret(name)) return false;
  if (exported == "none") return false;
  if (exported == "all") return !IsOfThisHost(name);
  if (!exported.empty()) return std::find(listed.begin(), listed.end(), name) != listed.end();
  return !IsOfThisHost(name) && (IsOne(name, kNames) || StartsWithOne(name, kPrefixes));
}

using Variables = std::map<std::string, std::string>;

// Each entry is NAME=value.
Variables Divide(const std::vector<std::string>& entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    variables.insert(pair);
  }
  return variables;
}

// Adds all variables that begin with `prefix`, except hlaunch's own.
void AddAll(string_view prefix, const Variables& here, Variables& chosen) {
  for (const auto& variable : here) {
    if (absl::StartsWith(variable.first, prefix) && !IsOwn(variable.first)) {
      chosen.insert(variable);
    }
  }
}

// Adds the variables of -x.
absl::Status AddNamed(const HostWish& wish, const Variables& here, Variables& chosen) {
  for (const std::string& variable : wish.variables) {
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (absl::EndsWith(name, "*") && equals == std::string::npos) {
      AddAll(name.substr(0, name.size() - 1), here, chosen);
      continue;
    }
    if (!IsName(name) || IsOwn(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("-x '", PrintableLine(name), "': expected VAR or VAR=VALUE",
                       IsOwn(name) ? ", and none of hlaunch's own" : ""));
    }
    const auto found = here.find(name);
    if (equals == std::string::npos && found == here.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("-x ", name, ": it is not set here; write -x ", name, "=VALUE"));
    }
    chosen[name] = equals == std::string::npos ? found->second : variable.substr(equals + 1);
  }
  return absl::OkStatus();
}

std::vector<std::string> Joined(const Variables& variables) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExportedVariables(const HostWish& wish,
                                                           const Environment& environment) {
  const std::vector<string_view> listed = absl::StrSplit(wish.exported, ',', absl::SkipEmpty());
  const Variables here = Divide(environment.Without(""));
  Variables chosen;
  for (const auto& variable : here) {
    if (IsName(variable.first) && Goes(variable.first, wish.exported, listed)) {
      chosen.insert(variable);
    }
  }
  // All hosts run the scripts by the Python of the environment in which this hlaunch lies.
  if (const auto python = here.find(kEnvPython); python != here.end()) chosen.insert(*python);
  HLAUNCH_RETURN_IF_ERROR(AddNamed(wish, here, chosen));
  return Joined(chosen);
}

absl::StatusOr<std::vector<std::string>> InheritedVariables(const HostWish& wish,
                                                            const Environment& environment,
                                                            string_view but) {
  const std::vector<std::string> all = environment.Without(but);
  if (wish.exported.empty() && wish.variables.empty()) return all;
  const std::vector<string_view> listed = absl::StrSplit(wish.exported, ',', absl::SkipEmpty());
  const bool everything = wish.exported.empty() || wish.exported == "all";
  const Variables here = Divide(all);
  Variables chosen;
  for (const auto& variable : here) {
    const bool named = std::find(listed.begin(), listed.end(), variable.first) != listed.end();
    if (everything || (wish.exported != "none" && named)) chosen.insert(variable);
  }
  HLAUNCH_RETURN_IF_ERROR(AddNamed(wish, here, chosen));
  return Joined(chosen);
}

}  // namespace hlaunch
