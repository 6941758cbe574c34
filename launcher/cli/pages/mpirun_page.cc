// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/pages/mpirun_page.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/mpirun/mpirun_words.h"

namespace hlaunch {
namespace {

constexpr char kIntroduction[] =
    "# Words of mpirun and mpiexec\n"
    "\n"
    "This page is made of hlaunch's own table of these words; `mpirun --help` says the same where\n"
    "mpirun is hlaunch. Do not edit it: `build/launcher/hlaunch_man mpirun-words.md >\n"
    "launcher/manual/mpirun-words.md` makes it anew. [Coming from mpirun](mpirun.md) has the "
    "rest.\n"
    "\n"
    "Called by a link named `mpirun`, `mpiexec` or `mpiexec.hydra` (`hlaunch --install-links DIR` "
    "makes\n"
    "them) or by a name that Debian gives Open MPI's or MPICH's, such as `mpirun.openmpi`, "
    "hlaunch\n"
    "takes the words of Open MPI's mpirun and of MPICH's mpiexec alike, with one dash or two, and\n"
    "its [own options](options.md) beside them. Then the first word that is no option is the "
    "program,\n"
    "which is started as it is; rank 0 reads stdin; and lines have no tags.\n"
    "\n"
    "By the name hlaunch most of these words mean the same, where hlaunch has no own for it; "
    "those\n"
    "marked with * are not taken there.\n"
    "\n"
    "| Word | Here |\n"
    "|---|---|\n";

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

// "`-n N`, `-np N`".
std::string Names(const MpirunWord& word) {
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(word.names, ", ")) {
    names.push_back(absl::StrCat("`", name, word.value[0] == '\0' ? "" : " ", word.value, "`",
                                 word.under_that_name ? "*" : ""));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

std::string MpirunPage() {
  std::string page = kIntroduction;
  for (const MpirunWord& word : MpirunWords()) {
    absl::StrAppend(&page, "| ", Cell(Names(word)), " | ", Cell(SaidOf(word)), " |\n");
  }
  return page;
}

}  // namespace hlaunch
