// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/pages/options_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/pages/option_peers.h"

namespace hlaunch {
namespace {

constexpr char kOptionsIntroduction[] =
    "# Options\n"
    "\n"
    "This page is made of hlaunch's own table of options; `man hlaunch` and `hlaunch --help` say "
    "the\n"
    "same. Do not edit it: `build/launcher/hlaunch_man options.md > launcher/manual/options.md` "
    "makes\n"
    "it anew.\n"
    "\n"
    "Dashes and underscores are the same in long options; times take `s`, `m` or `h`; of an "
    "option\n"
    "that is repeated the last one counts; everything from the script on is the script's. What is\n"
    "typed beats the file of `--config`, which beats torchrun's `PET_*` variables.\n"
    "\n"
    "The last two columns compare with torchrun 2.14 and with mpirun (Open MPI, MPICH). `same` is "
    "the\n"
    "same meaning; a dash says that there is nothing of the kind. [torchrun](torchrun.md) and\n"
    "[mpirun](mpirun.md) say what to type in place of their options.\n";

// Escapes bars, since a bar would end the cell.
std::string CellOrDash(const std::string& text) {
  return text.empty() ? "–" : absl::StrReplaceAll(text, {{"|", "\\|"}});
}

std::string Names(const OptionRow& row) {
  const bool has_short = row.short_name[0] != '\0';
  return absl::StrCat(has_short ? absl::StrCat("`", row.short_name, "`, ") : "", "`", row.name,
                      row.takes_value() ? " " : "", row.value, "`");
}

OptionPeer PeerOf(const OptionRow& row) {
  for (const OptionPeer& peer : OptionPeers()) {
    if (absl::string_view(peer.name) == row.name) return peer;
  }
  return {row.name, "", ""};
}

std::string Line(const OptionRow& row) {
  const OptionPeer peer = PeerOf(row);
  return absl::StrCat("| ", CellOrDash(Names(row)), " | ", CellOrDash(row.help), " | ",
                      CellOrDash(peer.torchrun), " | ", CellOrDash(peer.mpirun), " |\n");
}

}  // namespace

std::string OptionsPage(const std::vector<CommandHelp>& commands) {
  std::string page = kOptionsIntroduction;
  for (const OptionRow& row : OptionTable()) {
    if (row.group[0] != '\0') {
      absl::StrAppend(&page, "\n## ", row.group,
                      "\n\n| Option | What it does | torchrun | mpirun |\n|---|---|---|---|\n");
    }
    absl::StrAppend(&page, Line(row));
  }
  for (const CommandHelp& other : commands) {
    absl::StrAppend(&page, "\n## ", other.command, "\n\n```text\n", other.help, "```\n");
  }
  return page;
}

}  // namespace hlaunch
