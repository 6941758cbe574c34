// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/ask_options.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

std::string ExitCodes() {
  return absl::StrCat("\nExit code: 0 answered; 2 wrong usage; ", kExitBadEndpoint,
                      " no rendezvous answers there, or it is busy; ", kExitRefused,
                      " there\nis no such job, the token is not right, or stacks are not shown.\n");
}

std::string WhyHelp() {
  return absl::StrCat(
      "usage: hlaunch why [JOB] [--rank LIST] [--json]\n"
      "       hlaunch why JOB --rdzv-endpoint HOST[:PORT] [--rank LIST] [--json]\n\n"
      "Says where all ranks of JOB (its --rdzv-id) are now, who holds up the others, and what "
      "that\n"
      "rank does, also while nothing seems wrong. It stops no rank. Your own jobs on this host "
      "are\n"
      "found by themselves; without JOB, the only one that runs. A job elsewhere is asked at its\n"
      "--rdzv-endpoint, from any host. A script named `why` is started as `hlaunch ./why`.\n\n",
      DescribeOptions(WhyOptionRows()), ExitCodes());
}

std::string StacksHelp() {
  return absl::StrCat(
      "usage: hlaunch stacks [JOB] [--rank LIST] [--native] [--json]\n"
      "       hlaunch stacks JOB --rdzv-endpoint HOST[:PORT] [--rank LIST] [--native] [--json]\n\n"
      "Shows the stacks of the main threads of all ranks of JOB (its --rdzv-id): each stack once\n"
      "with its ranks, the rarest first. Your own jobs on this host are found by themselves; "
      "without\n"
      "JOB, the only one that runs. A job elsewhere is asked at its --rdzv-endpoint, from any "
      "host;\n"
      "stacks show code, so without a token they are shown on the rendezvous' own host alone. A\n"
      "script named `stacks` is started as `hlaunch ./stacks`.\n\n",
      DescribeOptions(StacksOptionRows()), ExitCodes());
}

absl::StatusOr<RankQuestion> ReadQuestion(const TypedWords& read) {
  RankQuestion question;
  HLAUNCH_RETURN_IF_ERROR(read.ReadRanks("--rank", &question.ranks));
  const auto in_seconds = [](Duration time) {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
  };
  int seconds = in_seconds(question.patience);
  HLAUNCH_RETURN_IF_ERROR(read.ReadSeconds("--timeout", 1, in_seconds(kMaxPatience), &seconds));
  question.patience = std::chrono::seconds(seconds);
  question.native = read.Has("--native");
  return question;
}

absl::StatusOr<AskOptions> ParseAskOptions(absl::string_view word,
                                           absl::Span<const OptionRow> table, std::string (*help)(),
                                           int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, ReadWords(absl::StrCat("hlaunch ", word), table,
                                                            words, OptionPlace::kAnywhere));
  AskOptions options;
  if (read.Has("--help")) {
    options.text_to_print = help();
    return options;
  }
  HLAUNCH_ASSIGN_OR_RETURN(options.question, ReadQuestion(read));
  options.here = !read.Has("--rdzv-endpoint");
  if (options.here) {
    HLAUNCH_RETURN_IF_ERROR(CheckOneJob(word, read));
    if (!read.rest.empty()) options.words.job_id = read.rest[0];
    options.words.json = read.Has("--json");
    return options;
  }
  HLAUNCH_ASSIGN_OR_RETURN(options.words, ReadAskWords(word, read));
  if (options.words.job_id.empty()) {
    return InvalidArgumentError(absl::StrCat("hlaunch ", word,
                                             " needs the job, its --rdzv-id; hlaunch status ",
                                             "--rdzv-endpoint HOST[:PORT] lists all jobs"));
  }
  return options;
}

}  // namespace

absl::Status NoJobToAsk(const std::string& job_id) {
  return absl::NotFoundError(absl::StrCat(
      job_id.empty()
          ? "no job of yours runs on this host"
          : absl::StrCat("no job ", PrintableLine(job_id), " of yours runs on this host"),
      "; a job of other hosts is asked there, or from here with --rdzv-endpoint HOST[:PORT]; ",
      "hlaunch ps lists your jobs here, also detached ones that have ended, and those of a "
      "cluster"));
}

absl::StatusOr<AskOptions> ParseWhyOptions(int argc, const char* const* argv) {
  return ParseAskOptions("why", WhyOptionRows(), WhyHelp, argc, argv);
}

absl::StatusOr<AskOptions> ParseStacksOptions(int argc, const char* const* argv) {
  absl::StatusOr<AskOptions> options =
      ParseAskOptions("stacks", StacksOptionRows(), StacksHelp, argc, argv);
  if (options.ok()) options->question.kind = RankQuestion::Kind::kStacks;
  return options;
}

}  // namespace hlaunch
