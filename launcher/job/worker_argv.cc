// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/worker_argv.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/options/command_table.h"
#include "launcher/words/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

enum class FileKind { kNone, kDirectory, kFile };

FileKind KindOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return FileKind::kNone;
  return S_ISDIR(status.st_mode) ? FileKind::kDirectory : FileKind::kFile;
}

bool IsExecutable(const std::string& path) {
  return KindOf(path) == FileKind::kFile && ::access(path.c_str(), X_OK) == 0;
}

bool HasSlash(const std::string& name) { return absl::StrContains(name, "/"); }

std::string WorkingDirectory() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) != nullptr ? path : ".";
}

std::optional<std::string> FindInPath(const std::string& name, const Environment& environment) {
  std::string folders = environment.Get("PATH");
  if (folders.empty()) folders = "/usr/local/bin:/usr/bin:/bin";
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    const std::string path = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (IsExecutable(path)) return path;
  }
  return std::nullopt;
}

// Returns why an existing `python` of an environment cannot be run; empty if its file shows no
// reason.
std::string WhyNotRunnable(const std::string& python) {
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

// Returns the Python of the environment that `variable` names; empty if there is no such Python.
absl::StatusOr<std::string> PythonOf(const char* variable, const Environment& environment) {
  const std::string prefix = environment.Get(variable);
  const std::string python = absl::StrCat(prefix, "/bin/python");
  struct stat status = {};
  if (prefix.empty() || ::lstat(python.c_str(), &status) != 0) return "";
  const std::string why = WhyNotRunnable(python);
  if (why.empty()) return python;
  return absl::NotFoundError(
      absl::StrCat(variable, " is ", prefix, ", whose python does not run: ", python, " ", why,
                   "; activate another environment, unset ", variable, ", or set PYTHON_EXEC"));
}

absl::StatusOr<std::string> FindPython(const Environment& environment) {
  if (const std::string chosen = environment.Get("PYTHON_EXEC"); !chosen.empty()) {
    if (HasSlash(chosen) && IsExecutable(chosen)) return chosen;
    const auto found = HasSlash(chosen) ? std::nullopt : FindInPath(chosen, environment);
    if (found.has_value()) return *found;
    return absl::NotFoundError(
        absl::StrCat("PYTHON_EXEC is ", chosen, ", which is no program; correct it or unset it"));
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::string python, PythonOf(variable, environment));
    if (!python.empty()) return python;
  }
  for (const char* name : {"python3", "python"}) {
    if (const auto found = FindInPath(name, environment)) return *found;
  }
  return absl::NotFoundError(
      "no python3 in PATH; install it, set PYTHON_EXEC, or use --no-python for another program");
}

// What kind of program a file is, judged by its first line.
struct FileStart {
  bool runs_itself = false;  // It is an ELF file or has a #! line.
  bool is_python = false;    // Its #! line names python, or it has no #! line and is not ELF.
};

FileStart ReadStart(const std::string& path) {
  char bytes[256] = {};
  std::ifstream(path, std::ios::binary).read(bytes, sizeof bytes - 1);
  absl::string_view start(bytes);
  start = start.substr(0, start.find('\n'));
  const bool elf = absl::StartsWith(start,
                                    "\x7f"
                                    "ELF");
  const bool shebang = absl::StartsWith(start, "#!");
  return {elf || shebang, !elf && (!shebang || absl::StrContains(start, "python"))};
}

absl::Status NoSuch(absl::string_view what, const std::string& name, absl::string_view hint) {
  return absl::NotFoundError(
      absl::StrCat("no such ", what, ": ", name, " (in ", WorkingDirectory(), ")", hint));
}

// Returns the command of hlaunch whose spelling is near to `word`; empty if there is none.
std::string NearCommand(const std::string& word) {
  std::vector<std::string> commands;
  for (const CommandRow& row : CommandTable()) {
    if (!row.hidden()) commands.emplace_back(row.word);
  }
  // `train` means a script, not the command `drain`.
  const bool is_script = absl::StrContains(word, ".") || word == "train";
  return is_script ? "" : NearestSpelling(word, commands);
}

absl::Status NotRunnable(const std::string& path) {
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is not executable; run: chmod +x ", path));
}

absl::StatusOr<std::string> FindProgram(const std::string& name, const Environment& environment) {
  if (!HasSlash(name)) {
    if (const auto found = FindInPath(name, environment)) return *found;
    const bool here = KindOf(name) == FileKind::kFile;
    return NoSuch("program in PATH", name,
                  here ? absl::StrCat("; did you mean ./", name, "?") : "");
  }
  switch (KindOf(name)) {
    case FileKind::kNone:
      return NoSuch("program", name, "");
    case FileKind::kDirectory:
      return absl::FailedPreconditionError(absl::StrCat(name, " is a directory, not a program"));
    case FileKind::kFile:
      break;
  }
  if (!IsExecutable(name)) return NotRunnable(name);
  return name;
}

// Returns the words of argv before the script's arguments.
absl::StatusOr<std::vector<std::string>> StartOfScript(const std::string& script, bool run_path,
                                                       const Environment& environment) {
  const std::string path = HasSlash(script) ? script : absl::StrCat("./", script);
  const FileKind kind = KindOf(script);
  if (kind != FileKind::kFile && !HasSlash(script) && !absl::EndsWith(script, ".py") && !run_path) {
    if (const auto found = FindInPath(script, environment)) {
      return std::vector<std::string>{*found};
    }
  }
  if (kind == FileKind::kNone) {
    const std::string with_suffix = absl::StrCat(script, ".py");
    if (KindOf(with_suffix) == FileKind::kFile) {
      return NoSuch("script", script, absl::StrCat("; did you mean ", with_suffix, "?"));
    }
    const std::string command = NearCommand(script);
    return NoSuch("script", script,
                  command.empty() ? "" : absl::StrCat("; did you mean hlaunch ", command, "?"));
  }
  if (kind == FileKind::kDirectory && KindOf(script + "/__main__.py") != FileKind::kFile) {
    return absl::FailedPreconditionError(
        absl::StrCat(script, " is a directory, not a script; name the file in it"));
  }
  if (::access(script.c_str(), R_OK) != 0 && !IsExecutable(script)) {
    return absl::PermissionDeniedError(absl::StrCat(script, " cannot be read by this user"));
  }
  const bool by_name = kind == FileKind::kDirectory || absl::EndsWith(script, ".py") || run_path;
  const FileStart start = by_name ? FileStart{false, true} : ReadStart(script);
  if (start.runs_itself && IsExecutable(script)) return std::vector<std::string>{path};
  if (!start.is_python) return NotRunnable(script);
  HLAUNCH_ASSIGN_OR_RETURN(std::string python, FindPython(environment));
  return std::vector<std::string>{python, "-u", script};
}

std::string Absolute(const std::string& path) {
  return absl::StartsWith(path, "/") ? path : absl::StrCat(WorkingDirectory(), "/", path);
}

// Returns the path of the script as seen from this directory; workers may run in another one.
std::string ScriptSeenFromHere(const ScriptRequest& request) {
  const std::string& script = request.command.front();
  const bool is_module = request.module && !request.run_path;
  if (request.directory.empty() || is_module || absl::StartsWith(script, "/")) return script;
  const std::string there = absl::StrCat(Absolute(request.directory), "/", script);
  const bool is_file =
      !request.no_python && (KindOf(there) != FileKind::kNone || absl::EndsWith(script, ".py"));
  return HasSlash(script) || is_file ? there : script;
}

}  // namespace

absl::StatusOr<std::string> FindWorkersDirectory(const std::string& directory) {
  if (KindOf(directory) == FileKind::kDirectory) return Absolute(directory);
  return absl::NotFoundError(absl::StrCat("--wdir ", directory, ": there is no such directory",
                                          " (in ", WorkingDirectory(), ")"));
}

absl::StatusOr<std::vector<std::string>> MakeWorkerArgv(const ScriptRequest& request,
                                                        const Environment& environment) {
  HLAUNCH_CHECK(!request.command.empty());
  const std::string script = ScriptSeenFromHere(request);
  std::vector<std::string> argv;
  if (request.module && !request.run_path) {
    HLAUNCH_ASSIGN_OR_RETURN(std::string python, FindPython(environment));
    argv = {python, "-u", "-m", script};
  } else if (request.no_python && !request.run_path) {
    HLAUNCH_ASSIGN_OR_RETURN(std::string program, FindProgram(script, environment));
    argv = {program};
  } else {
    HLAUNCH_ASSIGN_OR_RETURN(argv, StartOfScript(script, request.run_path, environment));
  }
  if (!request.directory.empty()) argv[0] = Absolute(argv[0]);
  argv.insert(argv.end(), request.command.begin() + 1, request.command.end());
  return argv;
}

}  // namespace hlaunch
