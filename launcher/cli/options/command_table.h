// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/options/option_table.h"

namespace hlaunch {

// The program that carries out a command.
enum class CommandProgram {
  kHlaunch,
  kAgent,   // hlaunch-agent, which links gRPC. `hlaunch` execs it.
  kDaemon,  // hlaunchd, which links OpenSSL. `hlaunch` execs it.
};

// A command of `hlaunch`: a first word that asks for something other than a job. This table has
// the spelling and the help of each command; launch.cc, or agent_main.cc for those that need gRPC,
// names the function that carries it out.
struct CommandRow {
  const char* word;     // The first word after the program's name.
  const char* usage;    // What --help shows after the word.
  const char* summary;  // One line for manual pages and completions. Empty: the command is hidden.
  CommandProgram program;
  bool for_torchrun;  // The command also works when the program is called torchrun.

  bool hidden() const { return summary[0] == '\0'; }
};

// All commands in the order of --help.
absl::Span<const CommandRow> CommandTable();

// Returns the command that the command line begins with, or null if the line starts a job. Pure.
const CommandRow* FindCommand(int argc, const char* const* argv);

// The options of commands and of hlaunch-rendezvous.
absl::Span<const OptionRow> StatusOptionRows();
absl::Span<const OptionRow> WhyOptionRows();
absl::Span<const OptionRow> StacksOptionRows();
absl::Span<const OptionRow> DrainOptionRows();
absl::Span<const OptionRow> UndrainOptionRows();
absl::Span<const OptionRow> AttachOptionRows();
absl::Span<const OptionRow> LogsOptionRows();
absl::Span<const OptionRow> StopOptionRows();
absl::Span<const OptionRow> KillOptionRows();
absl::Span<const OptionRow> PsOptionRows();
absl::Span<const OptionRow> NodesOptionRows();
absl::Span<const OptionRow> TopOptionRows();
absl::Span<const OptionRow> DevicesOptionRows();
absl::Span<const OptionRow> CheckOptionRows();
absl::Span<const OptionRow> TokenOptionRows();
absl::Span<const OptionRow> ClusterOptionRows();
absl::Span<const OptionRow> RunOptionRows();
absl::Span<const OptionRow> AdoptOptionRows();
absl::Span<const OptionRow> ServiceOptionRows();

// Returns the program's name for messages: "torchrun" if it was called so, else "hlaunch". Pure.
std::string ProgramName(absl::string_view argv0);

}  // namespace hlaunch
