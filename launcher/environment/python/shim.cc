// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/python/shim.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/workers/process/tool_run.h"
#include "launcher/environment/python/files.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPatience = std::chrono::seconds(10);
// The answer is what stands between these words: the path, then each variable, with a zero byte
// before each.
constexpr absl::string_view kBegin = "hlaunch's answer:", kEnd = "hlaunch's answer ends";
constexpr char kQuestion[] =
    "import os, sys\n"
    "told = [b\"hlaunch's answer:\", os.fsencode(sys.executable or '')]\n"
    "told += [name + b'=' + value for name, value in os.environb.items()]\n"
    "os.write(1, b'\\0'.join(told + [b\"hlaunch's answer ends\"]))\n";

// Runs a program in a directory: cd DIRECTORY, then the program and its words.
constexpr char kThere[] = "cd \"$1\" && shift && exec \"$@\"";

// What shells and Python set by themselves.
bool IsOfShellOrPython(absl::string_view entry) {
  static const std::set<absl::string_view> names = {"_", "SHLVL", "PWD", "OLDPWD", "LC_CTYPE"};
  return names.count(entry.substr(0, entry.find('='))) != 0;
}

absl::Status RunsNone(const std::string& shim, const std::string& directory,
                      const ToolAnswer& answer) {
  const std::string how = answer.exit_code >= 0 ? absl::StrCat("exit code ", answer.exit_code)
                                                : "no answer within 10 s";
  return absl::FailedPreconditionError(
      absl::StrCat(shim, " is a shim, which runs no Python in ", directory, " (", how,
                   "): run it there to see why, choose a version there, or set PYTHON_EXEC to the "
                   "path of a Python"));
}

}  // namespace

bool IsShim(const std::string& python) {
  const fs::path path(python);
  if (path.parent_path().filename() == "shims") return true;
  std::error_code error;
  const fs::path leads_to = fs::canonical(path, error).filename();
  return leads_to == "mise" || leads_to == "rtx" || leads_to == "rye";
}

absl::StatusOr<ShimChoice> AskShim(const std::string& shim, const std::string& directory,
                                   const Environment& environment) {
  const std::vector<std::string> before = environment.Without(kEnvToken);
  const ToolAnswer answer = RunTool(
      {"/bin/sh", "-c", kThere, "sh", directory, shim, "-S", "-c", kQuestion}, kPatience, before);
  const absl::string_view told = answer.text;
  const size_t begin = told.find(kBegin), end = told.rfind(kEnd);
  if (answer.exit_code != 0 || begin == std::string::npos) return RunsNone(shim, directory, answer);
  const bool whole = end != std::string::npos && end > begin;
  const std::vector<std::string> words =
      absl::StrSplit(told.substr(begin, whole ? end - begin : std::string::npos), '\0');
  if (words.size() < 2 || !IsExecutable(words[1])) return RunsNone(shim, directory, answer);
  ShimChoice choice{words[1], {}};
  for (size_t i = 2; whole && i + 1 < words.size(); ++i) {
    const bool same = std::find(before.begin(), before.end(), words[i]) != before.end();
    if (!same && !IsOfShellOrPython(words[i])) choice.variables.push_back(words[i]);
  }
  return choice;
}

}  // namespace hlaunch
