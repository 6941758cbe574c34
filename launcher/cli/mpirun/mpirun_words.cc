// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/mpirun_words.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/mpirun/launcher_settings.h"
#include "launcher/cli/mpirun/placement.h"
#include "launcher/cli/mpirun/take_words.h"

namespace hlaunch {
namespace {

using enum MpirunVerdict;
using Values = absl::Span<const std::string>;

constexpr bool kUnderThatName = true;

// Takes a flag that changes nothing.
absl::Status TakeNothing(Values, MpirunLine&) { return absl::OkStatus(); }

const MpirunWord kWords[] = {
    // How many.
    {"-n, -np, --n, --np", "N", kSame, "all ranks; by the name mpirun one for each CPU without it",
     nullptr, TakeRanks},
    {"-c", "N", kSame, "`-n N`", nullptr, TakeRanks, kUnderThatName},
    {"-N, --npernode", "N", kSame,
     "`--nproc-per-node N`; beside `-n` each host has at most N, and more are refused", nullptr,
     TakePerNode},
    {"-ppn, -perhost", "N", kSame,
     "`--nproc-per-node N`; beside `-n` it changes nothing on one host, and a second round of "
     "hosts is "
     "refused",
     nullptr, TakePerRound},
    // Where.
    {"-H, --host, -hosts", "a,b:4", kSame,
     "[`--hosts`](hosts.md); beside `--hostfile` each must be in that file, and has one place "
     "without a number",
     nullptr, TakeHosts},
    {"--hostfile, --machinefile, -f, --default-hostfile", "FILE", kSame,
     "[`--hostfile`](hosts.md#which-hosts); a host without a number has one rank", nullptr,
     TakeHostfile},
    {"--map-by", "WHERE", kBetter,
     "`ppr:N:node`, also for each `socket`, `numa`, `l3cache` or `core` of a host, and "
     "bound there; `:PE=N` as `--bind core:N`; else ranks follow devices, or cores, in order. "
     "`node` over several hosts is refused, unless there is one rank on each, as ranks are "
     "numbered "
     "host by host",
     nullptr, TakeMapBy},
    {"--rank-by", "HOW", kAccepted,
     "ranks are numbered host by host; `span`, and `node` over several hosts, are refused", nullptr,
     TakeRankBy},
    {"--byslot, --bycore, --bysocket", "", kAccepted, "see `--map-by`", nullptr, TakeNothing},
    {"--bind-to", "WHERE[:N]", kSame,
     "[`--bind`](binding.md): `none`, `core`, `core:N`, `l3`, `numa`, `socket`; `hwthread` is "
     "refused. Without the word only ranks with devices are bound",
     nullptr, TakeBindTo},
    {"--bind-to-core", "", kSame, "`--bind core`", nullptr,
     [](Values, MpirunLine& line) {
       line.bind = "core";
       return absl::OkStatus();
     }},
    {"--bind-to-none", "", kSame, "`--bind none`", nullptr,
     [](Values, MpirunLine& line) {
       line.bind = "none";
       return absl::OkStatus();
     }},
    {"--cpus-per-proc, --cpus-per-rank", "N", kSame, "`--bind core:N`", nullptr,
     [](Values values, MpirunLine& line) {
       line.cores = values[0];
       return absl::OkStatus();
     }},
    {"--report-bindings", "", kBetter, "drawn; also with `--dry-run`", nullptr, TakeReportBindings},
    {"--display", "WHAT,...", kSame, "`bindings`; `map` and `allocation` as `--display-map`",
     nullptr, TakeDisplay},
    {"--display-map, --display-allocation, --display-devel-map, -print-rank-map", "", kSame,
     "`-v`, by which each host says its ranks", nullptr, TakeVerbose},
    {"--do-not-launch", "", kBetter, "`--dry-run`", nullptr,
     [](Values, MpirunLine& line) {
       line.words.emplace_back("--dry-run");
       return absl::OkStatus();
     }},
    {"--oversubscribe", "", kSame,
     "more ranks than the named hosts or a scheduler's job have slots, spread evenly; else so many "
     "ranks as `-n` says are started, however many cores there are",
     nullptr,
     [](Values, MpirunLine& line) {
       line.oversubscribes = true;
       return absl::OkStatus();
     },
     kUnderThatName},
    {"--nooversubscribe, --no-oversubscribe", "", kAccepted,
     "the slots of hosts and of a scheduler's job are kept anyway", nullptr,
     [](Values, MpirunLine& line) {
       line.oversubscribes = false;
       return absl::OkStatus();
     },
     kUnderThatName},
    {"--use-hwthread-cpus, --use-hwthreads", "", kAccepted,
     "hardware threads count where no number is given", nullptr, TakeNothing},
    {"--rankfile, -rf", "FILE", kSame,
     "[`--bind slots:…`](binding.md), and its hosts; refused where ranks are not host by host, or "
     "hosts' ranks have different slots",
     nullptr,
     [](Values values, MpirunLine& line) {
       line.rankfile = values[0];
       return absl::OkStatus();
     },
     kUnderThatName},
    // What ranks get.
    {"-x, -env, --set-env", "NAME[=VALUE]", kSame,
     "`-x`; also `-env NAME VALUE`; `-x 'NAME*'` are all that begin so; of several programs for "
     "its own alone; by the name mpirun one that is not set is left out",
     nullptr, TakeOwnVariable},
    {"-genv", "NAME[=VALUE]", kSame, "`-x`; also `-genv NAME VALUE`", nullptr, TakeVariable},
    {"-genvlist, -envlist", "NAME,...", kSame, "`--export NAME,...`", "--export"},
    {"-genvall, -envall", "", kSame, "`--export all`", nullptr,
     [](Values, MpirunLine& line) { return TakeExport("all", line); }},
    {"-genvnone, -envnone", "", kSame, "`--export none`", nullptr,
     [](Values, MpirunLine& line) { return TakeExport("none", line); }},
    {"--wdir, -wd", "DIR", kSame, "`--wdir`; the program is sought there too", "--wdir"},
    {"--mca, --gmca, --omca", "NAME VALUE", kSame,
     "`OMPI_MCA_NAME=VALUE` for the ranks, which is what mpirun makes of it; what says where ranks "
     "run or how hosts are reached is [taken as such](mpirun.md#variables-and-parameters); what is "
     "for mpirun's own parts changes nothing, and a line says so",
     nullptr, TakeMca},
    {"--prtemca, --pmixmca", "NAME VALUE", kAccepted,
     "as `--mca`, if it says where ranks run or how hosts are reached; else it is for parts of "
     "mpirun that are not here, and a line says so",
     nullptr, TakeForeignMca},
    // Output and input.
    {"--tag-output", "", kBetter, "`[1,RANK]<stdout>:`, and never within a line", nullptr, TakeTags,
     kUnderThatName},
    {"-l, -prepend-rank", "", kBetter, "`[RANK]`, and never within a line", nullptr, TakeRankTags,
     kUnderThatName},
    {"-prepend-pattern", "TEXT", kSame, "`--log-prefix`, for `%r`", nullptr, TakePattern},
    {"--timestamp-output", "", kBetter, "the same word; in UTC, to the millisecond",
     "--timestamp-output"},
    {"--output", "WHAT,...", kSame,
     "`tag`, `timestamp`, `merge`, `dir=DIR`; `file=` and `xml` are refused", nullptr, TakeOutput},
    {"--output-filename", "DIR[:nocopy]", kBetter,
     "[`--log-dir DIR --tee 3`](logs.md), with its layout; `:nocopy`: `--redirects 3`", nullptr,
     TakeOutputFilename},
    {"-outfile-pattern, -errfile-pattern", "PATTERN", kRefused,
     "write --output-filename DIR, which has a file for each rank and stream", nullptr, nullptr},
    {"--merge-stderr-to-stdout", "", kSame, "`--merge-stderr`", nullptr,
     [](Values, MpirunLine& line) {
       line.words.emplace_back("--merge-stderr");
       return absl::OkStatus();
     }},
    {"--stdin, -s", "0|all|none", kBetter,
     "the same word; ranks that do not read it find its end. `all`, on one host: each rank reads "
     "everything, in every round",
     nullptr, TakeStdin},
    {"-q, --quiet", "", kSame, "`-q`; by the name mpirun, hlaunch says only warnings anyway",
     nullptr, TakeNothing, kUnderThatName},
    {"-v, --verbose, -d, --debug-daemons", "", kSame, "`-v`", nullptr, TakeVerbose, kUnderThatName},
    // How it ends.
    {"--timeout", "S", kSame,
     "the same word; exit code 254, where mpirun has 110; "
     "`MPIEXEC_TIMEOUT` too",
     "--timeout"},
    {"--enable-recovery, --continuous", "", kRefused,
     "a rank that fails ends the job; write --max-restarts N to start it again", nullptr, nullptr},
    {"-disable-auto-cleanup", "", kRefused,
     "a rank that fails ends the job; write --max-restarts N to start it again", nullptr, nullptr},
    {"--forward-signals", "NAMES", kRefused,
     "SIGUSR1, SIGUSR2 and SIGCONT reach the ranks without a word; for others write "
     "--signals-to-handle",
     nullptr, nullptr},
    {"-print-all-exitcodes", "", kRefused,
     "write --report FILE, which has the code of each that failed", nullptr, nullptr},
    // Several programs.
    {"--app, -configfile", "FILE", kSame,
     "[`--also`](mpirun.md#several-programs); a program a line, each with `-n`, as behind `:`",
     nullptr,
     [](Values values, MpirunLine& line) {
       line.app_file = values[0];
       return absl::OkStatus();
     },
     kUnderThatName},
    // How hosts are reached.
    {"--launch-agent, -launcher-exec, -bootstrap-exec", "CMD", kSame, "`--launch-agent 'CMD %h'`",
     nullptr, TakeLaunchAgent, kUnderThatName},
    {"-bootstrap-exec-args", "ARGS", kSame, "arguments of ssh, or of that command", nullptr,
     TakeShellArguments},
    {"-launcher, -bootstrap, -rmk", "NAME", kAccepted, "`ssh` and `fork`; others are refused",
     nullptr, TakeLauncher},
    {"-iface", "NAME", kRefused,
     "name the network in the MPI's own words, such as -x UCX_NET_DEVICES=eth0, and --local-addr",
     nullptr, nullptr},
    {"--prefix", "DIR", kAccepted, "for mpirun's own programs; a line says so", nullptr,
     TakePrefix},
    // The rest.
    {"--allow-run-as-root", "", kAccepted, "root may start jobs", nullptr, TakeNothing},
    {"--personality, --host-personality", "NAME", kAccepted, "there is only one", nullptr,
     TakeNothing},
    {"--preload-binary, --preload-files", "", kRefused,
     "programs are not copied to hosts; they have to be there", nullptr, nullptr},
    {"--dvm, --dvm-uri, --ompi-server", "URI", kRefused, "there is no server that starts jobs",
     nullptr, nullptr},
    {"--debug, -tv, -gdb", "", kRefused,
     "hlaunch starts no debugger; see hlaunch why and hlaunch stacks for ranks that hang", nullptr,
     nullptr},
    {"--xterm", "RANKS", kRefused, "write --log-dir DIR, and look at the ranks' files", nullptr,
     nullptr},
    {"--xml", "", kRefused, "write --json and --report FILE", nullptr, nullptr},
    {"--tune, -am", "FILE", kRefused, "write its lines as --mca NAME VALUE", nullptr, nullptr},
    {"--with-ft", "WHAT", kRefused, "write --max-restarts N", nullptr, nullptr},
};

}  // namespace

size_t MpirunWord::num_values() const {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ' ', absl::SkipEmpty());
  return parts.size();
}

bool MpirunWord::IsNamed(absl::string_view name) const {
  for (absl::string_view each : absl::StrSplit(names, ", ")) {
    while (absl::ConsumePrefix(&each, "-")) {
    }
    if (each == name) return true;
  }
  return false;
}

absl::Span<const MpirunWord> MpirunWords() { return kWords; }

const MpirunWord* FindMpirunWord(absl::string_view typed) {
  const absl::string_view dashed = typed.substr(0, typed.find('='));
  absl::string_view name = dashed;
  if (!absl::ConsumePrefix(&name, "-")) return nullptr;
  absl::ConsumePrefix(&name, "-");
  const auto* found = std::find_if(std::begin(kWords), std::end(kWords),
                                   [name](const MpirunWord& word) { return word.IsNamed(name); });
  return name.empty() || found == std::end(kWords) ? nullptr : found;
}

std::string SaidOf(const MpirunWord& word) {
  switch (word.verdict) {
    case kSame:
      return absl::StrCat("same: ", word.said);
    case kBetter:
      return absl::StrCat("better: ", word.said);
    case kAccepted:
      return absl::StrCat("accepted: ", word.said);
    case kRefused:
      return absl::StrCat("refused: ", word.said);
  }
  return word.said;
}

std::string MpirunHelp() {
  std::string text =
      "usage: mpirun [options] program [args...]\n\n"
      "This is hlaunch, which takes the words of Open MPI's mpirun and of MPICH's mpiexec, and "
      "its\n"
      "own; those are in hlaunch --help.\n\n";
  for (const MpirunWord& word : MpirunWords()) {
    const std::string said =
        absl::StrReplaceAll(SaidOf(word), {{"`", ""},
                                           {"](hosts.md)", ""},
                                           {"](hosts.md#which-hosts)", ""},
                                           {"](binding.md)", ""},
                                           {"](logs.md)", ""},
                                           {"](mpirun.md#several-programs)", ""},
                                           {"](mpirun.md#variables-and-parameters)", ""},
                                           {"[--", "--"},
                                           {"[`--", "--"}});
    absl::StrAppend(&text, "  ", word.names, word.value[0] == '\0' ? "" : " ", word.value,
                    "\n      ", said, "\n");
  }
  return text;
}

}  // namespace hlaunch
