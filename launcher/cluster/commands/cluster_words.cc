// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/cluster_words.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/job_id.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

std::string ExitCodes() {
  return absl::StrCat("\nExit code: 0; 2 wrong usage; ", kExitBadEndpoint,
                      " no hlaunchd answers here, or it does not reach the head;\n", kExitRefused,
                      " there is no such job, or it is another user's.\n");
}

std::string PsHelp() {
  return absl::StrCat(
      "usage: hlaunch ps [-a] [-e] [--json] [JOB]\n\n"
      "Lists your jobs on the cluster of this host's hlaunchd that have not ended: who started\n"
      "them, what they do and why, on how many nodes, since when, how often they were restarted,\n"
      "and which part of their time went into training (goodput). With JOB, a number, all that is\n"
      "known of that one. Of other users' jobs neither command line nor variables are shown.\n\n"
      "Below them it lists your jobs on this host that the cluster does not know: all that run, "
      "and\n"
      "detached ones that have ended. On a host without a cluster it lists these alone.\n\n",
      DescribeOptions(PsOptionRows()), ExitCodes());
}

std::string NodesHelp() {
  return absl::StrCat(
      "usage: hlaunch nodes [--json]\n\n"
      "Shows the hosts of the cluster: whether they take jobs, and why not; free and all devices,\n"
      "free and all slots (workers without devices), jobs, version and labels.\n\n",
      DescribeOptions(NodesOptionRows()), ExitCodes());
}

std::string TopHelp() {
  return absl::StrCat(
      "usage: hlaunch top [-a] [JOB]\n\n"
      "Shows your jobs and the hosts of the cluster, drawn in place on a terminal, until q. On a "
      "host\n"
      "without a cluster: your jobs that run on this host, or the only one. With JOB, that one: "
      "its\n"
      "round, ranks, restarts and what else hlaunch status --watch shows.\n\n",
      DescribeOptions(TopOptionRows()), ExitCodes());
}

absl::StatusOr<ClusterCommand> Parse(absl::string_view word, absl::Span<const OptionRow> table,
                                     std::string (*help)(), size_t most_words, int argc,
                                     const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, ReadWords(absl::StrCat("hlaunch ", word), table,
                                                            words, OptionPlace::kAnywhere));
  ClusterCommand options;
  if (read.Has("--help")) {
    options.text_to_print = help();
    return options;
  }
  if (read.rest.size() > most_words) {
    return InvalidArgumentError(absl::StrCat(
        "hlaunch ", word, most_words == 0 ? " takes no word like " : " takes one job, and then ",
        most_words == 0 ? "" : "comes ", PrintableLine(read.rest.back()),
        "; to start a script of that name, write hlaunch ./", word));
  }
  if (!read.rest.empty()) options.job = read.rest[0];
  options.all = read.Has("--all");
  options.ended = read.Has("--ended");
  options.json = read.Has("--json");
  return options;
}

}  // namespace

absl::StatusOr<ClusterCommand> ParsePsOptions(int argc, const char* const* argv) {
  return Parse("ps", PsOptionRows(), PsHelp, 1, argc, argv);
}

absl::StatusOr<ClusterCommand> ParseNodesOptions(int argc, const char* const* argv) {
  return Parse("nodes", NodesOptionRows(), NodesHelp, 0, argc, argv);
}

absl::StatusOr<ClusterCommand> ParseTopOptions(int argc, const char* const* argv) {
  return Parse("top", TopOptionRows(), TopHelp, 1, argc, argv);
}

std::optional<uint64_t> JobNumber(absl::string_view word) {
  if (const std::optional<uint64_t> named = ClusterJobNumber(word)) return named;
  uint64_t number = 0;
  const bool digits = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
  if (!digits || !absl::SimpleAtoi(word, &number) || number == 0) return std::nullopt;
  return number;
}

}  // namespace hlaunch
