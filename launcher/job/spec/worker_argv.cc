// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/worker_argv.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/environment/python/files.h"
#include "launcher/environment/python/find_python.h"
#include "launcher/text/shell_words.h"
#include "launcher/text/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// What kind of program a file is, judged by its first line.
struct FileStart {
  bool runs_itself = false;  // It is an ELF file or has a #! line.
  bool is_python = false;    // Its #! line names python, or it has no #! line and is not ELF.
  std::optional<std::vector<std::string>> any_python = {};  // See OptionsOfAnyPython.
};

// The options of Python in a #! line that leaves it to PATH which Python that is, as in
// "#!/usr/bin/env -S python3 -O"; unset if the line says something else. Pure.
std::optional<std::vector<std::string>> OptionsOfAnyPython(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "#!") || line.find_first_of("'\"\\$") != line.npos) {
    return std::nullopt;
  }
  std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() < 2 || !absl::EndsWith(words[0], "/env")) return std::nullopt;
  const size_t python = words[1] == "-S" && words.size() > 2 ? 2 : 1;
  if (words[python] != "python3" && words[python] != "python") return std::nullopt;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(python) + 1);
  return words;
}

FileStart ReadStart(const std::string& path) {
  char bytes[256] = {};
  std::ifstream(path, std::ios::binary).read(bytes, sizeof bytes - 1);
  absl::string_view start(bytes);
  start = start.substr(0, start.find('\n'));
  const bool elf = absl::StartsWith(start,
                                    "\x7f"
                                    "ELF");
  const bool shebang = absl::StartsWith(start, "#!");
  return {elf || shebang, !elf && (!shebang || absl::StrContains(start, "python")),
          OptionsOfAnyPython(start)};
}

absl::Status NoSuch(absl::string_view what, const std::string& name, absl::string_view hint) {
  return absl::NotFoundError(
      absl::StrCat("no such ", what, ": ", name, " (in ", WorkingDirectory(), ")", hint));
}

// What another program's users type first, and what that is here.
struct ForeignCommand {
  absl::string_view word;
  absl::string_view hint;
};
constexpr absl::string_view kNoWord =
    "; hlaunch needs no such word before the script: leave it out";
constexpr absl::string_view kListsJobs = "; did you mean hlaunch ps?";
constexpr ForeignCommand kForeignCommands[] = {
    {"run", kNoWord},
    {"start", kNoWord},
    {"launch", kNoWord},
    {"exec", kNoWord},
    {"submit", "; hlaunch --detach starts a job that goes on without its terminal"},
    {"jobs", kListsJobs},
    {"list", kListsJobs},
    {"ls", kListsJobs},
    {"queue", kListsJobs},
    {"cancel", "; did you mean hlaunch stop?"},
    {"hosts", "; did you mean hlaunch nodes?"},
    {"gpus", "; did you mean hlaunch devices?"},
};

// Returns the file whose name is near to that of `path`, in the same folder; empty if there is
// none.
std::string NearFile(const std::string& path) {
  constexpr int kMostEntries = 10000;  // Bounds the time in a folder of data.
  const std::filesystem::path typed(path);
  const std::string folder = typed.parent_path();
  const bool has_suffix = typed.has_extension();
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end;
  for (int n = 0; !error && entry != end && n < kMostEntries; entry.increment(error), ++n) {
    const std::filesystem::path name = entry->path().filename();
    const bool fits =
        has_suffix ? name.extension() == typed.extension() : name.extension() == ".py";
    if (fits && entry->is_regular_file(error)) names.push_back(has_suffix ? name : name.stem());
  }
  std::sort(names.begin(), names.end());
  const std::string near = NearestSpelling(typed.filename().string(), names);
  return near.empty() ? "" : typed.parent_path() / (has_suffix ? near : near + ".py");
}

// Returns the command of hlaunch whose spelling is near to `word`; empty if there is none.
std::string NearCommand(const std::string& word) {
  std::vector<std::string> commands;
  for (const CommandRow& row : CommandTable()) {
    if (!row.hidden()) commands.emplace_back(row.word);
  }
  // `train` means a script, not the command `drain`.
  constexpr size_t kShortest = 3;
  const bool is_script = word.size() < kShortest || absl::StrContains(word, ".") || word == "train";
  return is_script ? "" : NearestSpelling(word, commands);
}

// Returns what else may be meant by a script that is not there; empty if nothing is near.
std::string HintFor(const std::string& script) {
  if (KindOf(script + ".py") == FileKind::kFile) {
    return absl::StrCat("; did you mean ", script, ".py?");
  }
  for (const ForeignCommand& command : kForeignCommands) {
    if (script == command.word) return std::string(command.hint);
  }
  if (const std::string file = NearFile(script); !file.empty()) {
    return absl::StrCat("; did you mean ", file, "?");
  }
  const std::string command = NearCommand(script);
  return command.empty() ? "" : absl::StrCat("; did you mean hlaunch ", command, "?");
}

absl::Status IsNotebook(const std::string& path) {
  const std::string quoted = ShellQuote(path);
  const std::string script = absl::StrCat(absl::StripSuffix(path, ".ipynb"), ".py");
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is a notebook, not a script; run: jupyter nbconvert --to script ",
                   quoted, ", and start what that writes, ", script));
}

absl::Status NotRunnable(const std::string& path) {
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is not executable; run: chmod +x ", path));
}

absl::Status IsPipe(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " is a pipe, which can be read once, and every worker reads its script, "
                   "again after a restart: write it to a file"));
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
    case FileKind::kPipe:
      return IsPipe(name);
    case FileKind::kFile:
      break;
  }
  if (!IsExecutable(name)) return NotRunnable(name);
  return name;
}

absl::StatusOr<std::vector<std::string>> RunByPython(const std::string& script,
                                                     const std::vector<std::string>& options,
                                                     const Environment& environment) {
  HLAUNCH_ASSIGN_OR_RETURN(std::string python, FindPython(environment));
  std::vector<std::string> words = {python, "-u"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script);
  return words;
}

// Returns the words of argv before the script's arguments.
absl::StatusOr<std::vector<std::string>> StartOfScript(const std::string& script, bool run_path,
                                                       const Environment& environment) {
  const std::string path = HasSlash(script) ? script : absl::StrCat("./", script);
  const FileKind kind = KindOf(script);
  if (kind != FileKind::kFile && !HasSlash(script) && !absl::EndsWith(script, ".py") && !run_path) {
    if (const auto found = FindInPath(script, environment)) {
      const FileStart start = ReadStart(*found);
      if (start.any_python) return RunByPython(*found, *start.any_python, environment);
      return std::vector<std::string>{*found};
    }
  }
  if (kind == FileKind::kNone) {
    return NoSuch("script", script, HintFor(script));
  }
  if (kind == FileKind::kPipe) return IsPipe(script);
  if (kind == FileKind::kFile && absl::EndsWith(script, ".ipynb")) return IsNotebook(script);
  if (kind == FileKind::kDirectory && KindOf(script + "/__main__.py") != FileKind::kFile) {
    return absl::FailedPreconditionError(
        absl::StrCat(script, " is a directory, not a script; name the file in it"));
  }
  if (::access(script.c_str(), R_OK) != 0 && !IsExecutable(script)) {
    return absl::PermissionDeniedError(absl::StrCat(script, " cannot be read by this user"));
  }
  const bool by_name = kind == FileKind::kDirectory || absl::EndsWith(script, ".py") || run_path;
  const FileStart start = by_name ? FileStart{false, true} : ReadStart(script);
  if (start.any_python) return RunByPython(script, *start.any_python, environment);
  if (start.runs_itself && IsExecutable(script)) return std::vector<std::string>{path};
  if (!start.is_python) return NotRunnable(script);
  return RunByPython(script, {}, environment);
}

// Refuses the file of a script where a module's name is expected.
absl::Status CheckModule(const std::string& module) {
  if (!absl::EndsWith(module, ".py") || KindOf(module) != FileKind::kFile) return absl::OkStatus();
  const std::string name = absl::StrReplaceAll(absl::StripSuffix(module, ".py"), {{"/", "."}});
  return absl::InvalidArgumentError(absl::StrCat(
      "-m ", module, ": that is a file, and -m takes a module's name; leave -m out, or ",
      "write -m ", name));
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
  return absl::NotFoundError(absl::StrCat("no such working directory for workers: ", directory,
                                          " (in ", WorkingDirectory(), ")"));
}

absl::StatusOr<std::vector<std::string>> MakeWorkerArgv(const ScriptRequest& request,
                                                        const Environment& environment) {
  HLAUNCH_CHECK(!request.command.empty());
  const std::string script = ScriptSeenFromHere(request);
  std::vector<std::string> argv;
  if (request.module && !request.run_path) {
    HLAUNCH_RETURN_IF_ERROR(CheckModule(script));
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
