// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "agent/events/event_url.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/shell_words.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

absl::Status SetLogDir(string_view text, Options& options) {
  if (text.empty()) return InvalidArgumentError("the name of the folder is missing");
  options.logs.directory = std::string(text);
  return absl::OkStatus();
}

absl::Status SetRedirects(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.logs.redirects, ParseStreamChoice(text));
  return absl::OkStatus();
}

absl::Status SetTee(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.logs.tee, ParseStreamChoice(text));
  return absl::OkStatus();
}

absl::Status SetShownRanks(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.logs.shown_ranks, ParseLocalRanks(text));
  return absl::OkStatus();
}

absl::Status SetPrefix(string_view text, Options& options) {
  if (text.empty()) {
    return InvalidArgumentError("expected text such as '[${role_name}${local_rank}]: ', or none");
  }
  options.logs.no_prefix = text == "none";
  options.logs.prefix_template = std::string(text);
  return absl::OkStatus();
}

// An empty template counts as not given: the variable of torchrun then gives the prefix.
absl::Status SetTorchrunsPrefix(string_view text, Options& options) {
  options.logs.prefix_template = std::string(text);
  return absl::OkStatus();
}

absl::Status SetConsole(string_view text, Options& options) {
  if (text != "fold" && text != "all") return InvalidArgumentError("expected fold or all");
  options.logs.folding = text == "fold" ? Folding::kAlways : Folding::kNever;
  return absl::OkStatus();
}

absl::Status SetRotation(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.logs.rotation, ParseRotation(text));
  return absl::OkStatus();
}

absl::Status SetReport(string_view text, Options& options) {
  if (text.empty()) return InvalidArgumentError("the name of the file is missing");
  options.output.report_file = std::string(text);
  return absl::OkStatus();
}

absl::Status SetTerminationLog(string_view text, Options& options) {
  if (text.empty()) return InvalidArgumentError("the name of the file is missing");
  options.output.termination_log = std::string(text);
  return absl::OkStatus();
}

absl::Status SetMetricsPort(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.output.metrics, ParseMetricsPlace(text));
  return absl::OkStatus();
}

absl::Status SetStatusPage(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.output.status_page, ParseMetricsPlace(text));
  return absl::OkStatus();
}

// Sets --on-event: a URL, or the words of a command.
absl::Status SetOnEvent(string_view text, Options& options) {
  EventReceiver receiver;
  if (absl::StartsWith(text, "http://") || absl::StartsWith(text, "https://")) {
    HLAUNCH_ASSIGN_OR_RETURN(receiver.url, ParseEventUrl(text));
  } else {
    HLAUNCH_ASSIGN_OR_RETURN(receiver.command, SplitWords(text));
    if (receiver.none()) return InvalidArgumentError("expected a command or an http URL");
  }
  options.output.on_event = std::move(receiver);
  return absl::OkStatus();
}

absl::Status SetPrintEnv(string_view text, Options& options) {
  int rank = 0;
  if (text != "true" && !ParseInt(text, 0, kMaxNproc - 1, &rank)) {
    return InvalidArgumentError("expected a local rank, such as 0");
  }
  options.instead.print_env = rank;
  return absl::OkStatus();
}

absl::Status SetFolder(string_view text, std::string* folder) {
  if (text.empty()) return InvalidArgumentError("the name of the folder is missing");
  *folder = std::string(text);
  return absl::OkStatus();
}

const OptionRow kOutputRows[] = {
    {"Output", "", "--log-dir", "DIR", "workers' log and error files lie below it", SetLogDir,
     kPet},
    {"", "-r", "--redirects", "WHICH", "to files: 1 stdout, 2 stderr, 3 both, or RANK:WHICH,...",
     SetRedirects, kPet},
    {"", "-t", "--tee", "WHICH", "the same, to files and here", SetTee, kPet},
    {"", "", "--local-ranks-filter", "N,...", "show only these local ranks here", SetShownRanks,
     kPet},
    {"", "", "--duplicate-stdout-filters", "TEXT,...",
     "copy lines of stdout with such a text to one file (,, is a comma)",
     [](string_view text, Options& options) {
       options.logs.stdout_filters = ParseFilters(text);
       return absl::OkStatus();
     },
     kPet, true},
    {"", "", "--duplicate-stderr-filters", "TEXT,...", "the same for stderr",
     [](string_view text, Options& options) {
       options.logs.stderr_filters = ParseFilters(text);
       return absl::OkStatus();
     },
     kPet, true},
    // Before --log-prefix, which wins because it is set later.
    {"", "", "--log-line-prefix-template", "TEMPLATE", "torchrun's word for --log-prefix",
     SetTorchrunsPrefix, kPet},
    Excluding(
        "--log-line-prefix-template", nullptr,
        {"", "", "--log-prefix", "TEMPLATE|none",
         "before lines here: ${role_name} ${hostname} ${local_rank} ${rank} ${stream} ${time}",
         SetPrefix}),
    {"", "", "--timestamp-output", "", "the time stands before each line here",
     [](string_view, Options& options) { return SetFlag(&options.logs.timestamps); }},
    {"", "", "--merge-stderr", "", "workers' stderr comes to stdout here",
     [](string_view, Options& options) { return SetFlag(&options.logs.merge_stderr); }},
    {"", "", "--console", "fold|all",
     "equal lines of several ranks once, or all (fold on a terminal)", SetConsole},
    {"", "", "--log-rotate", "SIZE[:KEEP]", "put a log file of this size aside, keep KEEP (1)",
     SetRotation},
    {"", "", "--report", "FILE", "write how the job ended, as JSON", SetReport},
    {"", "", "--termination-log", "FILE",
     "file that takes the first cause of a failure (/dev/termination-log, where it is)",
     SetTerminationLog},
    {"", "", "--json", "", "hlaunch's own lines are JSON, one object each",
     [](string_view, Options& options) { return SetFlag(&options.output.json); }},
    {"", "", "--metrics-port", "PORT|ADDR:PORT",
     "serve metrics over HTTP, on loopback unless ADDR is given", SetMetricsPort},
    {"", "", "--status-page", "PORT|ADDR:PORT",
     "serve a page that shows the job, where its rendezvous is; on loopback unless ADDR is given",
     SetStatusPage},
    {"", "", "--on-event", "COMMAND|URL",
     "told of rounds, restarts and the end: COMMAND reads JSON, or it is posted to an http URL",
     SetOnEvent},
    Excluding("--quiet", kLeaveOneOut,
              {"", "-v", "--verbose", "", "say more",
               [](string_view, Options& options) {
                 options.output.log_level = LogLevel::kDebug;
                 return absl::OkStatus();
               }}),
    {"", "-q", "--quiet", "", "say only warnings and errors",
     [](string_view, Options& options) {
       options.output.log_level = LogLevel::kWarning;
       return absl::OkStatus();
     }},
    {"Instead of a job", "", "--dry-run", "", "say what would be run, and run nothing",
     [](string_view, Options& options) { return SetFlag(&options.instead.dry_run); }},
    {"", "", "--print-env", "[=RANK]", "print what the worker with this local rank (0) would see",
     SetPrintEnv},
    {"", "", "--print-completion", "bash|zsh", "print the shell's completion of this command",
     nullptr},
    {"", "", "--install-links", "DIR",
     "make the links torchrun, mpirun, mpiexec and mpiexec.hydra to this program there",
     [](string_view text, Options& options) {
       return SetFolder(text, &options.instead.install_links);
     }},
    {"", "", "--install-copies", "DIR", "copy hlaunch's programs there, for containers",
     [](string_view text, Options& options) {
       return SetFolder(text, &options.instead.install_copies);
     }},
    {"", "-V", "--version", "", "print the version; with -v also what is inside", nullptr},
    {"", "-h", "--help", "", "print this text", nullptr},
};

}  // namespace

absl::Span<const OptionRow> OutputOptions() { return kOutputRows; }

}  // namespace hlaunch
