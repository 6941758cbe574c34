// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/options/command_table.h"

namespace hlaunch {
namespace {

constexpr bool kAlsoTorchrun = true;
constexpr bool kNotTorchrun = false;  // A user of torchrun's name means a script.

constexpr CommandRow kRows[] = {
    {"status", "[JOB] --rdzv-endpoint HOST[:PORT]", "say where a job stands and why",
     CommandProgram::kAgent, kNotTorchrun},
    {"devices", "[--json]", "show this node's devices", CommandProgram::kHlaunch, kAlsoTorchrun},
    {"check", "[--json]", "check whether this node is fit for a job", CommandProgram::kHlaunch,
     kAlsoTorchrun},
    {"doctor", "[--json] [options]", "check all nodes of a job without the job",
     CommandProgram::kHlaunch, kAlsoTorchrun},
    // A keeper whose agent was killed reports the node's death with it.
    {"--obituary", "", "", CommandProgram::kAgent, kAlsoTorchrun},
};

}  // namespace

absl::Span<const CommandRow> CommandTable() { return kRows; }

const CommandRow* FindCommand(int argc, const char* const* argv) {
  if (argc < 2) return nullptr;
  const bool as_torchrun = ProgramName(argv[0]) == "torchrun";
  for (const CommandRow& row : kRows) {
    if (absl::string_view(argv[1]) == row.word && (row.for_torchrun || !as_torchrun)) return &row;
  }
  return nullptr;
}

std::string ProgramName(absl::string_view argv0) {
  const absl::string_view name = argv0.substr(argv0.rfind('/') + 1);
  return name == "torchrun" ? "torchrun" : "hlaunch";
}

}  // namespace hlaunch
