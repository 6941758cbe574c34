// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/options/option_table.h"

namespace hlaunch {

// The program that carries out a command.
enum class CommandProgram {
  kHlaunch,
  kAgent,   // hlaunch-agent, which links gRPC: `hlaunch` becomes it by exec.
  kDaemon,  // hlaunchd, which links OpenSSL: likewise.
};

// A word of `hlaunch` that asks for something else than a job. The only place that knows its
// spelling and what is said of it; launch.cc knows the function behind it.
struct CommandRow {
  const char* word;     // The first word after the program's name.
  const char* usage;    // What --help shows behind it.
  const char* summary;  // One line, for manual pages and completions; empty: the word is hidden.
  CommandProgram program;
  bool for_torchrun;  // It means the same where the program is called torchrun.

  bool hidden() const { return summary[0] == '\0'; }
};

// All commands in the order of --help.
absl::Span<const CommandRow> CommandTable();

// The command that a command line begins with; null: it starts a job. Pure.
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
absl::Span<const OptionRow> ServiceOptionRows();

// What the program is called in messages: "torchrun" under that name, else "hlaunch". Pure.
std::string ProgramName(absl::string_view argv0);

}  // namespace hlaunch
