// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/adopt/adopt.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/command/adopt/python_side.h"
#include "launcher/environment/python/find_python.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

// The names under which hlaunch reads the words of other launchers.
constexpr const char* kLinks[] = {"torchrun", "deepspeed", "mpirun", "mpiexec", "mpiexec.hydra"};

std::string RunHelp() {
  return absl::StrCat(
      "usage: hlaunch run PROGRAM [ARGS]\n\n"
      "Runs PROGRAM as it is. If it starts torch's elastic agent, hlaunch runs that job instead.\n"
      "This works for accelerate launch, fabric run, python -m torch.distributed.run, notebooks,\n"
      "and all Python programs that call torch.distributed.launcher, or start one that does.\n\n",
      DescribeOptions(RunOptionRows()),
      "\nHLAUNCH_TORCHRUN=try lets torch's agent run what hlaunch cannot; without it, the program\n"
      "is told in one line why, and starts nothing.\n"
      "\nExamples:\n"
      "  hlaunch run accelerate launch --multi_gpu train.py\n"
      "  hlaunch run python train.py\n"
      "\nExit code: that of PROGRAM; 2 wrong usage, 126 it cannot be run, 127 it is not there.\n");
}

std::string AdoptHelp() {
  return absl::StrCat(
      "usage: hlaunch adopt [--links NAME,...]\n"
      "       hlaunch adopt --undo\n"
      "       hlaunch adopt --show\n\n"
      "In the active Python environment, hlaunch runs what torch's elastic agent would run, as\n"
      "hlaunch run does for one program. torchrun becomes a link to hlaunch.\n\n",
      DescribeOptions(AdoptOptionRows()),
      "\nHLAUNCH_TORCHRUN=0 leaves a program to torch's own agent.\n"
      "\nExit code: 0; 2 wrong usage, or the environment cannot be changed.\n");
}

// Returns the words after the command, divided. `text_to_print` is set if they ask for help.
absl::StatusOr<TypedWords> Read(const char* command, absl::Span<const OptionRow> rows, int argc,
                                const char* const* argv, OptionPlace place) {
  return ReadWords(command, rows, std::vector<std::string>(argv + 2, argv + argc), place);
}

int Fail(const absl::Status& status, int exit_code) {
  LogError(status.message());
  return exit_code;
}

int PrintHelp(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return FlushStdout();
}

// Becomes the program `words[0]`, which is sought in PATH. Returns only if that fails.
int Become(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  const int why = errno;
  const bool script = absl::EndsWith(words[0], ".py");
  LogError(absl::StrCat("cannot run ", PrintableLine(words[0]), ": ", std::strerror(why),
                        script ? "; hlaunch SCRIPT starts a job, and hlaunch run python SCRIPT a "
                                 "script that starts one itself"
                               : ""));
  return why == ENOENT ? kExitNotFound : kExitNotExecutable;
}

}  // namespace

absl::StatusOr<AdoptOptions> ParseRunOptions(int argc, const char* const* argv) {
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, Read("hlaunch run", RunOptionRows(), argc, argv,
                                                       OptionPlace::kBeforeScript));
  AdoptOptions options;
  if (read.Has("--help")) {
    options.text_to_print = RunHelp();
    return options;
  }
  options.words = read.rest;
  if (!options.words.empty() && options.words[0] == "--") {
    options.words.erase(options.words.begin());
  }
  if (options.words.empty()) {
    return InvalidArgumentError(
        "hlaunch run needs a program, such as accelerate or python; to start a script of the name "
        "run, write hlaunch ./run");
  }
  if (options.words[0][0] == '-') {
    return UnknownWord(RunOptionRows(), options.words[0],
                       "options of a job belong to the program that starts it");
  }
  return options;
}

absl::StatusOr<AdoptOptions> ParseAdoptOptions(int argc, const char* const* argv) {
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, Read("hlaunch adopt", AdoptOptionRows(), argc,
                                                       argv, OptionPlace::kAnywhere));
  AdoptOptions options;
  if (read.Has("--help")) {
    options.text_to_print = AdoptHelp();
    return options;
  }
  if (!read.rest.empty()) {
    return InvalidArgumentError(
        absl::StrCat("hlaunch adopt takes no word like ", PrintableLine(read.rest[0]),
                     "; to start a script of that name, write hlaunch ./adopt"));
  }
  if (read.Has("--undo") + read.Has("--show") + read.Has("--links") > 1) {
    return InvalidArgumentError("hlaunch adopt: --undo, --show and --links: give one of them");
  }
  if (read.Has("--links")) {
    const std::string given = read.Get("--links", "");
    for (const absl::string_view name : absl::StrSplit(given, ',')) {
      if (name == "none" ||
          std::find(std::begin(kLinks), std::end(kLinks), name) != std::end(kLinks)) {
        continue;
      }
      return InvalidArgumentError(absl::StrCat("--links '", PrintableLine(given),
                                               "': expected none, or some of ",
                                               absl::StrJoin(kLinks, ", ")));
    }
    options.words = {"--links", given};
  }
  for (const char* flag : {"--undo", "--show"}) {
    if (read.Has(flag)) options.words.emplace_back(flag);
  }
  return options;
}

int RunAdopted(int argc, char** argv) {
  const absl::StatusOr<AdoptOptions> options = ParseRunOptions(argc, argv);
  if (!options.ok()) return Fail(options.status(), kExitUsage);
  if (options->text_to_print) return PrintHelp(*options->text_to_print);
  const std::string self = PathOfThisProgram();
  const absl::StatusOr<std::string> side = FindPythonSide(self);
  if (!side.ok()) return Fail(side.status(), kExitNotFound);
  const Environment environment = Environment::OfThisProcess();
  const std::string wish = environment.Get(kEnvTorchrun);
  if (wish.empty() || wish == "0") ::setenv(kEnvTorchrun, "1", 1);
  ::setenv(kEnvProgram, self.c_str(), 1);
  ::setenv(kEnvPythonPath, WithFolder(environment.Get(kEnvPythonPath), *side).c_str(), 1);
  ::unsetenv(kEnvPython);  // The program may belong to another environment.
  return Become(options->words);
}

int Adopt(int argc, char** argv) {
  const absl::StatusOr<AdoptOptions> options = ParseAdoptOptions(argc, argv);
  if (!options.ok()) return Fail(options.status(), kExitUsage);
  if (options->text_to_print) return PrintHelp(*options->text_to_print);
  const std::string self = PathOfThisProgram();
  const absl::StatusOr<std::string> side = FindPythonSide(self);
  if (!side.ok()) return Fail(side.status(), kExitNotFound);
  // hlaunch may lie in an environment of its own, as from pipx: the active one is meant.
  for (const char* active : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (!Environment::OfThisProcess().Get(active).empty()) ::unsetenv(kEnvPython);
  }
  const absl::StatusOr<std::string> python = FindPython(Environment::OfThisProcess());
  if (!python.ok()) return Fail(python.status(), kExitNotFound);
  std::vector<std::string> words = {
      *python, "-B", absl::StrCat(*side, "/", kAdoptPackage, "/environment.py"), "--program", self};
  words.insert(words.end(), options->words.begin(), options->words.end());
  return Become(std::move(words));
}

}  // namespace hlaunch
