// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/failure/python_that_ran.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/workers/worker/worker_env.h"

namespace hlaunch {
namespace {

bool CannotImport(const WorkerFailure& failure) {
  for (const absl::string_view text :
       {absl::string_view(failure.message), absl::string_view(failure.traceback),
        absl::string_view(failure.log_tail)}) {
    for (const char* sign : {"No module named ", "ModuleNotFoundError", "ImportError"}) {
      if (absl::StrContains(text, sign)) return true;
    }
  }
  return false;
}

std::string ValueOf(absl::string_view name, const std::vector<std::string>& environment) {
  for (absl::string_view entry : environment) {
    if (absl::ConsumePrefix(&entry, name) && absl::ConsumePrefix(&entry, "=")) {
      return std::string(entry);
    }
  }
  return "";
}

// Says that a variable names another environment than that of `python`; empty if none does. Where
// both are set, CONDA_PREFIX is mostly that of the environment from which the other one was made.
std::string OtherEnvironment(const std::string& python,
                             const std::vector<std::string>& environment) {
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = ValueOf(variable, environment);
    const std::string other = absl::StrCat(prefix, "/bin/python");
    if (prefix.empty() || ::access(other.c_str(), X_OK) != 0) continue;
    std::error_code error;
    const auto folder = std::filesystem::path(python).parent_path();
    if (std::filesystem::equivalent(folder, absl::StrCat(prefix, "/bin"), error)) return "";
    return absl::StrCat("; ", variable, " is ", prefix,
                        ", which has another one: PYTHON_EXEC=", other, " names that");
  }
  return "";
}

}  // namespace

void AddPythonThatRan(const WorkerSpec& spec, const Assignment& assignment,
                      WorkerFailure& failure) {
  if (!failure.evidence.empty() || !failure.spawned.empty() || !CannotImport(failure)) return;
  const OtherProgram* const other =
      OtherProgramOf(spec.others, failure.rank, assignment.world_size);
  const std::string& program = (other == nullptr ? spec.argv : other->argv).front();
  const absl::string_view name = absl::string_view(program).substr(program.rfind('/') + 1);
  if (!absl::StartsWith(name, "python")) return;
  failure.kind = FailureKind::kImportFailed;
  failure.evidence =
      absl::StrCat("its Python is ", program, OtherEnvironment(program, spec.inherited_env));
}

}  // namespace hlaunch
