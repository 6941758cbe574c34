// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/help_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/exit_codes.h"

namespace hlaunch {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 31;

std::string Names(const OptionRow& row) {
  const bool has_short = row.short_name[0] != '\0';
  return absl::StrCat("  ", has_short ? row.short_name : "  ", has_short ? ", " : "  ", row.name,
                      row.takes_value() ? " " : "", row.value);
}

// Puts the words of `help` into the help column, beside `names` or, if `names` is too long, below.
std::string Wrapped(const std::string& names, absl::string_view help) {
  std::string text;
  std::string line = names;
  const auto break_line = [&] {
    absl::StrAppend(&text, line, "\n");
    line.clear();
  };
  if (line.size() + 2 > kHelpColumn) break_line();
  line.resize(kHelpColumn, ' ');
  bool first = true;
  for (const absl::string_view word : absl::StrSplit(help, ' ')) {
    if (!first && line.size() + 1 + word.size() > kWidth) {
      break_line();
      line.resize(kHelpColumn, ' ');
      first = true;
    }
    absl::StrAppend(&line, first ? "" : " ", word);
    first = false;
  }
  break_line();
  return text;
}

std::string Usage(const std::string& program) {
  const bool as_torchrun = program == "torchrun";
  std::string text = absl::StrCat("usage: ", program, " [options] script.py [args...]\n");
  for (const CommandRow& row : CommandTable()) {
    if (as_torchrun || row.hidden()) continue;
    absl::StrAppend(&text, "       hlaunch ", row.word, row.usage[0] != '\0' ? " " : "", row.usage,
                    "\n");
  }
  return absl::StrCat(
      text, "\nStarts a distributed job, one command per node, and keeps it alive.\n",
      as_torchrun ? "This torchrun is hlaunch: it takes torchrun's options, and more.\n" : "");
}

constexpr char kExamples[] =
    "\nLong options may be written with underscores; times take s, m, h or d (30, 1.5s,\n"
    "5min); of a repeated option the last counts, of --watch-log each; all from the\n"
    "script on is its own.\n"
    "What is typed beats --config, which beats torchrun's PET_* variables.\n"
    "\nExamples:\n"
    "  one host, 8 workers:        hlaunch --nproc-per-node 8 train.py --lr 0.1\n"
    "  prints what to run there:   hlaunch --nnodes 2 --nproc-per-node 8 train.py\n"
    "  the same on both hosts:     hlaunch --nnodes 2 --rdzv-endpoint node0 train.py\n"
    "  as with torchrun:           hlaunch --nnodes 2 --node-rank 1\n"
    "                                --master-addr node0 train.py\n"
    "\nExit code: that of the first worker that failed, or 128 + its signal; 2 wrong\n"
    "usage, 126 and 127 program cannot be run, ";

}  // namespace

std::string DescribeOptions(absl::Span<const OptionRow> table) {
  std::string text;
  for (const OptionRow& row : table) {
    if (row.group[0] != '\0') absl::StrAppend(&text, "\n", row.group, ":\n");
    absl::StrAppend(&text, Wrapped(Names(row), row.help));
  }
  return text;
}

std::string HelpText(const std::string& program) {
  return absl::StrCat(Usage(program), DescribeOptions(OptionTable()), kExamples, OwnExitCodes(),
                      "\nhlaunch's own (the manual's exit-codes.md lists them).\n");
}

}  // namespace hlaunch
