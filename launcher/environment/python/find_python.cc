// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/python/find_python.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/environment/python/files.h"
#include "launcher/text/programs.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // As in the kernel.

bool ExistsAsALink(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Returns why an existing `python` of an environment cannot be run; empty if its file shows no
// reason.
std::string WhyNotRunnable(const std::string& python) {
  if (!ExistsAsALink(python)) return "is missing";
  if (KindOf(python) == FileKind::kNone) return "leads to a file that is gone";
  if (!IsExecutable(python)) return "is not executable";
  std::string start;
  std::getline(std::ifstream(python, std::ios::binary), start);
  if (!absl::StartsWith(start, "#!")) return "";
  const std::vector<std::string> words =
      absl::StrSplit(start.substr(2), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty() || KindOf(words[0]) != FileKind::kNone) return "";
  return absl::StrCat("needs ", words[0], ", which is gone");
}

// Whether the environment `prefix`, which is in PATH, has lost its Python. One of conda may have
// none.
bool LacksPython(const char* variable, const std::string& prefix) {
  return absl::string_view(variable) == "VIRTUAL_ENV" &&
         !ExistsAsALink(absl::StrCat(prefix, "/bin/python3"));
}

// Returns the Python of the environment that `variable` names; empty if there is no such Python and
// the environment is not `in_path`.
absl::StatusOr<std::string> PythonOf(const char* variable, const Environment& environment,
                                     bool in_path) {
  const std::string prefix = environment.Get(variable);
  const std::string python = absl::StrCat(prefix, "/bin/python");
  if (prefix.empty()) return "";
  if (!ExistsAsALink(python) && !(in_path && LacksPython(variable, prefix))) return "";
  const std::string why = WhyNotRunnable(python);
  if (why.empty()) return python;
  return absl::NotFoundError(
      absl::StrCat(variable, " is ", prefix, ", whose python does not run: ", python, " ", why,
                   "; activate another environment, unset ", variable, ", or set PYTHON_EXEC"));
}

bool IsSameFolder(const std::string& one, const std::string& other) {
  std::error_code error;
  return fs::equivalent(one, other, error);
}

// Refuses `python`, which was found in PATH, if it only comes after a Python that does not run, of
// an environment that is in PATH as well.
absl::Status CheckActive(const std::string& python, const Environment& environment) {
  const std::string last = fs::path(python).parent_path();
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string bin = absl::StrCat(environment.Get(variable), "/bin");
    if (environment.Get(variable).empty()) continue;
    const std::vector<std::string> folders = absl::StrSplit(PathVariable(environment), ':');
    for (const std::string& folder : folders) {
      if (folder == bin || IsSameFolder(folder, bin)) {
        HLAUNCH_RETURN_IF_ERROR(PythonOf(variable, environment, /*in_path=*/true).status());
      }
      if (folder == last) break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PythonOfPythonExec(const std::string& chosen,
                                               const Environment& environment) {
  if (HasSlash(chosen) && IsExecutable(chosen)) return chosen;
  const auto found = HasSlash(chosen) ? std::nullopt : FindInPath(chosen, environment);
  if (found.has_value()) return *found;
  return absl::NotFoundError(
      absl::StrCat("PYTHON_EXEC is ", chosen, ", which is no program; correct it or unset it"));
}

// Returns python3 in `folder`, if that is the folder of an environment's programs; empty if not.
std::string PythonOfEnvironment(const fs::path& folder) {
  // A Python knows its environment by the path by which it is called: not behind a link to bin/.
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  const std::string bin = error ? folder : real;
  const std::string python = bin + "/python3";
  // One of venv that has lost its Python does not run, while one of conda may have none.
  if (KindOf(bin + "/../pyvenv.cfg") == FileKind::kFile) return python;
  const bool of_conda = KindOf(bin + "/../conda-meta") == FileKind::kDirectory;
  return of_conda && ExistsAsALink(python) ? python : "";
}

// Returns `path` and, if it is a link, what it leads to, link by link.
std::vector<fs::path> LinksFrom(const fs::path& path) {
  std::vector<fs::path> links = {path};
  std::error_code error;
  for (int n = 0; n < kMostLinks; ++n) {
    const fs::path target = fs::read_symlink(links.back(), error);
    if (error) break;
    links.push_back(links.back().parent_path() / target);
  }
  return links;
}

}  // namespace

absl::StatusOr<std::string> FindPython(const Environment& environment) {
  if (const std::string chosen = environment.Get("PYTHON_EXEC"); !chosen.empty()) {
    return PythonOfPythonExec(chosen, environment);
  }
  if (const std::string own = environment.Get(kEnvPython); !own.empty()) {
    const std::string why = WhyNotRunnable(own);
    if (why.empty()) return own;
    return absl::NotFoundError(
        absl::StrCat("hlaunch belongs to an environment whose python does not run: ", own, " ", why,
                     "; make the environment anew, or set PYTHON_EXEC"));
  }
  for (const char* name : {"python3", "python"}) {
    const auto found = FindInPath(name, environment);
    if (!found) continue;
    HLAUNCH_RETURN_IF_ERROR(CheckActive(*found, environment));
    return *found;
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::string python,
                             PythonOf(variable, environment, /*in_path=*/false));
    if (!python.empty()) return python;
  }
  return absl::NotFoundError(
      "no python3 in PATH; install it, set PYTHON_EXEC, or use --no-python for another program");
}

std::string PythonBeside(const std::string& argv0, const std::string& program,
                         const Environment& environment) {
  std::vector<fs::path> places;
  const std::string called =
      HasSlash(argv0) ? argv0 : FindInPath(argv0, environment).value_or(program);
  std::error_code error;
  // A caller may give any name; only one that leads to this program says where it lies.
  if (fs::equivalent(called, program, error)) places = LinksFrom(Absolute(called));
  const fs::path bin = fs::path(program).parent_path();
  if (places.empty() || places.back().parent_path() != bin) places.push_back(bin / "hlaunch");
  // hlaunch-agent lies in libexec/hlaunch/ of an installation.
  if (bin.parent_path().filename() == "libexec") {
    places.emplace_back(PlacesOfProgram(program, "hlaunch").back());
  }
  for (const fs::path& place : places) {
    std::string python = PythonOfEnvironment(place.parent_path());
    if (!python.empty()) return python;
  }
  return "";
}

void NoteOwnPython(const char* argv0) {
  const Environment environment = Environment::OfThisProcess();
  if (!environment.Get(kEnvPython).empty()) return;
  const std::string python = PythonBeside(argv0, PathOfThisProgram(), environment);
  if (!python.empty()) ::setenv(kEnvPython, python.c_str(), 1);
}

}  // namespace hlaunch
