// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/detached_words.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

constexpr size_t kTailOfAttach = 10;

constexpr char kWhichJob[] =
    "\nJOB is the id that --detach printed; without it, the only one that runs. Jobs are kept "
    "in\n"
    "~/.local/state/hlaunch (XDG_STATE_HOME), the last 20 of those that have ended too. A number\n"
    "that is none of them is a job of the cluster (hlaunch ps). A job of yours that runs on this\n"
    "host without --detach is found, too: `stop` and `kill` end it if you name it, and `logs` "
    "says\n"
    "where its output is.\n";

std::string AttachHelp() {
  return absl::StrCat(
      "usage: hlaunch attach [JOB] [--tail N|all]\n\n"
      "Follows a job that was started with --detach as if it had been started in this terminal: "
      "its\n"
      "output comes here, and at its end its exit code. Ctrl-C leaves the job alone and ends this\n"
      "command with 130.",
      kWhichJob, "\n", DescribeOptions(AttachOptionRows()),
      "\nExit code: the job's; 130 left by Ctrl-C; 2 wrong usage; ", kExitRefused,
      " there is no such job.\n");
}

std::string LogsHelp() {
  return absl::StrCat(
      "usage: hlaunch logs [JOB] [-f] [--rank LIST] [--node NODE] [--since TIME]\n"
      "                    [--tail N|all] [-t] [--json]\n\n"
      "Prints the output of a detached job (stdout and stderr) on stdout, also after its end.",
      kWhichJob, "\n", DescribeOptions(LogsOptionRows()),
      "\nExit code: 0; 2 wrong usage; 3 the output of some hosts "
      "is missing (cluster);\n",
      kExitRefused, " there is no such job.\n");
}

std::string StopHelp() {
  return absl::StrCat(
      "usage: hlaunch stop [JOB] [--grace S]\n\n"
      "Ends a job that was started with --detach, on all of its hosts: its workers get SIGTERM, "
      "and\n"
      "SIGKILL after the job's --shutdown-timeout. Waits until nothing is left.",
      kWhichJob, "\n", DescribeOptions(StopOptionRows()),
      "\nExit code: 0 the job has ended, now or earlier; 1 it could not be stopped; 2 wrong "
      "usage;\n",
      kExitRefused, " there is no such job, or it was started on another host.\n");
}

std::string KillHelp() {
  return absl::StrCat(
      "usage: hlaunch kill [JOB]\n\n"
      "Ends a job at once, on all of its hosts: its workers get SIGKILL, and no time to save\n"
      "anything; `hlaunch stop` gives it. Waits until nothing is left.",
      kWhichJob, "\n", DescribeOptions(KillOptionRows()),
      "\nExit code: 0 the job has ended, now or earlier; 1 it could not be stopped; 2 wrong "
      "usage;\n",
      kExitRefused, " there is no such job, or it was started on another host.\n");
}

absl::Status ReadTail(const TypedWords& read, DetachedOptions& options) {
  if (!read.Has("--tail")) return absl::OkStatus();
  const std::string text = read.Get("--tail", "");
  int lines = 0;
  options.tail.reset();
  if (text == "all") return absl::OkStatus();
  if (!ParseInt(text, 0, INT_MAX, &lines)) {
    return InvalidArgumentError(
        absl::StrCat("--tail '", PrintableLine(text), "': expected a number of lines, or all"));
  }
  options.tail = static_cast<size_t>(lines);
  return absl::OkStatus();
}

absl::Status ReadGrace(const TypedWords& read, DetachedOptions& options) {
  constexpr int kMost = 24 * 3600;
  if (!read.Has("--grace")) return absl::OkStatus();
  int seconds = 0;
  HLAUNCH_RETURN_IF_ERROR(read.ReadSeconds("--grace", 0, kMost, &seconds));
  options.grace = std::chrono::seconds(seconds);
  return absl::OkStatus();
}

absl::StatusOr<DetachedOptions> Parse(absl::string_view word, absl::Span<const OptionRow> table,
                                      std::string (*help)(), int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, ReadWords(absl::StrCat("hlaunch ", word), table,
                                                            words, OptionPlace::kAnywhere));
  DetachedOptions options;
  if (read.Has("--help")) {
    options.text_to_print = help();
    return options;
  }
  if (read.rest.size() > 1) {
    return InvalidArgumentError(absl::StrCat(
        "hlaunch ", word, " takes one job, and then comes ", PrintableLine(read.rest[1]),
        "; to start a script of that name, write hlaunch ./", word));
  }
  if (!read.rest.empty()) options.job_id = read.rest[0];
  if (word == "attach") options.tail = kTailOfAttach;
  options.follow = word == "attach" || read.Has("--follow");
  options.timestamps = read.Has("--timestamps");
  options.json = read.Has("--json");
  options.node = read.Get("--node", "");
  options.since = read.Get("--since", "");
  HLAUNCH_RETURN_IF_ERROR(ReadTail(read, options));
  HLAUNCH_RETURN_IF_ERROR(read.ReadRanks("--rank", &options.ranks));
  HLAUNCH_RETURN_IF_ERROR(ReadGrace(read, options));
  return options;
}

}  // namespace

absl::StatusOr<DetachedOptions> ParseAttachOptions(int argc, const char* const* argv) {
  return Parse("attach", AttachOptionRows(), AttachHelp, argc, argv);
}

absl::StatusOr<DetachedOptions> ParseLogsOptions(int argc, const char* const* argv) {
  return Parse("logs", LogsOptionRows(), LogsHelp, argc, argv);
}

absl::StatusOr<DetachedOptions> ParseStopOptions(int argc, const char* const* argv) {
  return Parse("stop", StopOptionRows(), StopHelp, argc, argv);
}

absl::StatusOr<DetachedOptions> ParseKillOptions(int argc, const char* const* argv) {
  absl::StatusOr<DetachedOptions> options = Parse("kill", KillOptionRows(), KillHelp, argc, argv);
  if (options.ok()) options->grace = Duration::zero();
  return options;
}

}  // namespace hlaunch
