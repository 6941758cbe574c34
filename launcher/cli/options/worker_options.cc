// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/other_program.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr size_t kMaxRole = 256;
constexpr double kLeastHeartbeatTimeout = 0.1;  // Seconds.
constexpr double kLeastHangTimeout = 1;         // Seconds.

absl::Status SetRole(string_view text, Options& options) {
  const bool printable = std::all_of(text.begin(), text.end(), absl::ascii_isprint);
  if (text.size() > kMaxRole || !printable) {
    return InvalidArgumentError(
        absl::StrCat("expected at most ", kMaxRole, " printable characters"));
  }
  options.worker.role = std::string(text);
  return absl::OkStatus();
}

absl::Status SetDirectory(string_view text, Options& options) {
  if (text.empty()) return InvalidArgumentError("the name of the folder is missing");
  options.script.directory = std::string(text);
  return absl::OkStatus();
}

absl::Status AddProgram(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(OtherProgramWish wish, ParseOtherProgram(text));
  options.others.push_back(std::move(wish));
  return absl::OkStatus();
}

absl::Status SetStdin(string_view text, Options& options) {
  if (text != "true" && text != "0" && text != "none" && text != "all") {
    return InvalidArgumentError("expected 0, which is local rank 0, all or none");
  }
  options.worker.stdin_to = text == "none"  ? StdinTo::kNobody
                            : text == "all" ? StdinTo::kAll
                                            : StdinTo::kRank0;
  return absl::OkStatus();
}

absl::Status SetSignals(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.worker.signals_to_handle, ParseSignals(text));
  return absl::OkStatus();
}

// Old scripts of torch.distributed.launch and those of DeepSpeed want --local_rank.
absl::Status SetLocalRankOption(string_view text, Options& options) {
  if (text == "true") text = "--local-rank";  // No name was given: use torch's own spelling.
  const string_view bare = text.substr(std::min(text.find_first_not_of('-'), text.size()));
  const bool plain = std::all_of(bare.begin(), bare.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (bare.empty() || !plain) {
    return InvalidArgumentError("expected an option of the script, such as --local_rank");
  }
  options.script.local_rank_option = absl::StrCat(bare.size() == text.size() ? "--" : "", text);
  return absl::OkStatus();
}

absl::Status SetMpi(string_view text, Options& options) {
  constexpr std::pair<string_view, MpiWish> kWords[] = {{"auto", MpiWish::kAuto},
                                                        {"any", MpiWish::kAny},
                                                        {"pmi", MpiWish::kPmi},
                                                        {"pmix", MpiWish::kPmix},
                                                        {"none", MpiWish::kNone}};
  for (const auto& [word, wish] : kWords) {
    if (text != word) continue;
    options.mpi = wish;
    return absl::OkStatus();
  }
  return InvalidArgumentError("expected auto, any, pmi, pmix or none");
}

absl::Status SetCompat(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.worker.compat, ParseSet(text, {"openmpi", "slurm"}));
  return absl::OkStatus();
}

absl::Status SetHeartbeatTimeout(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.worker.heartbeat_timeout,
                           ParseTimeout(text, kLeastHeartbeatTimeout));
  return absl::OkStatus();
}

absl::Status SetStallAction(string_view text, Options& options) {
  if (text != "fail" && text != "warn") return InvalidArgumentError("expected fail or warn");
  options.worker.stall_action = text == "fail" ? StallAction::kFail : StallAction::kWarn;
  return absl::OkStatus();
}

absl::Status SetHangTimeout(string_view text, Options& options) {
  std::optional<Duration>& timeout = options.worker.hang_rule.timeout;
  if (text == "auto" || text == "off") {
    timeout = text == "off" ? std::optional<Duration>(Duration::zero()) : std::nullopt;
    return absl::OkStatus();
  }
  const absl::StatusOr<Duration> given = ParseTimeout(text, kLeastHangTimeout);
  if (!given.ok()) {
    return InvalidArgumentError(
        absl::StrCat("expected auto, off or seconds, at least ", kLeastHangTimeout));
  }
  timeout = *given;
  return absl::OkStatus();
}

absl::Status SetHangAction(string_view text, Options& options) {
  if (text != "fail" && text != "warn") return InvalidArgumentError("expected warn or fail");
  options.worker.hang_action = text == "fail" ? StallAction::kFail : StallAction::kWarn;
  return absl::OkStatus();
}

bool IsModuleName(string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || (c & 0x80) != 0;
  });
  return plain && !name.empty() && name.front() != '.' && name.back() != '.' &&
         !absl::ascii_isdigit(name.front()) && !absl::StrContains(name, "..");
}

absl::Status SetPreload(string_view text, Options& options) {
  Preload preload;
  preload.automatic = text == "auto";
  if (text != "auto" && text != "off") {
    for (const string_view name : absl::StrSplit(text, ',')) {
      if (!IsModuleName(name) || name == "auto" || name == "off") {
        return InvalidArgumentError("expected off, auto or names of modules, such as torch,numpy");
      }
      preload.modules.emplace_back(name);
    }
  }
  options.worker.preload = std::move(preload);
  return absl::OkStatus();
}

// The next options are for torchrun only. They are accepted if they change nothing, so that
// torchrun's command lines run.
absl::Status SetMonitorInterval(string_view text, Options& options) {
  HLAUNCH_RETURN_IF_ERROR(ParseTimeout(text, 0).status());
  options.unneeded.emplace_back("--monitor-interval");
  return absl::OkStatus();
}

absl::Status SetStartMethod(string_view text, Options& options) {
  if (text != "spawn" && text != "fork" && text != "forkserver") {
    return InvalidArgumentError("expected spawn, fork or forkserver");
  }
  options.unneeded.emplace_back("--start-method");
  return absl::OkStatus();
}

absl::Status SetEventHandler(string_view text, Options& options) {
  if (text != "null") {
    return InvalidArgumentError(
        "handlers are Python code of torch's, and hlaunch runs none; leave it out, or use --report "
        "FILE or --json");
  }
  options.unneeded.emplace_back("--event-log-handler");
  return absl::OkStatus();
}

absl::Status SetLogsSpecs(string_view text, Options& options) {
  if (text == "default") {
    options.unneeded.emplace_back("--logs-specs");
    return absl::OkStatus();
  }
  return InvalidArgumentError(
      "it names Python code of torch's, and hlaunch runs none; leave it out, and see --log-dir, "
      "--tee and --log-rotate");
}

absl::Status AddLineRule(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(LineRule rule, ParseLineRule(text));
  options.worker.line_rules.push_back(std::move(rule));
  return absl::OkStatus();
}

absl::Status AddSilenceRule(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(SilenceRule rule, ParseSilenceRule(text));
  options.worker.silence_rules.push_back(std::move(rule));
  return absl::OkStatus();
}

const OptionRow kWorkerRows[] = {
    Excluding(
        "--no-python", "--module runs Python and --no-python runs none: leave one of them out",
        {"The program", "-m", "--module", "", "the script is a Python module's name",
         [](string_view, Options& options) { return SetFlag(&options.script.module); }, kPet}),
    {"", "", "--no-python", "", "run the program itself, without Python",
     [](string_view, Options& options) { return SetFlag(&options.script.no_python); }, kPet},
    {"", "", "--run-path", "", "run the script with Python, even if it would run by itself",
     [](string_view, Options& options) { return SetFlag(&options.script.run_path); }, kPet},
    {"", "", "--preload", "MODULE,...|auto|off",
     "a node imports these once, and its ranks are forked from that (HLAUNCH_PRELOAD, off)",
     SetPreload},
    {"", "", "--wdir", "DIR", "workers' working directory, where the program is sought too (this)",
     SetDirectory},
    {"", "", "--also", "'-n N PROG ...'",
     "the last N ranks run another program; -x NAME=VALUE and --wdir DIR before it are theirs",
     AddProgram, kNoPet, kNoCommas, kRepeats},
    {"", "", "--stdin", "[=0|all|none]",
     "local rank 0 reads standard input, each rank all of it, or nobody (a lone worker does)",
     SetStdin},
    {"", "", "--role", "NAME", "name of the workers' role (default)", SetRole, kPet},
    {"", "", "--signals-to-handle", "NAMES", "passed on to workers (SIGTERM,SIGINT,SIGHUP,SIGQUIT)",
     SetSignals, kPet},
    {"", "", "--pass-local-rank", "[=NAME]",
     "give the script its local rank as well, as the option NAME=N", SetLocalRankOption},
    {"", "", "--place-in-words", "",
     "replace ${rank} ${node_rank} ${nnodes} ${world_size} ${master_addr} ${master_port} in ARGS",
     [](string_view, Options& options) { return SetFlag(&options.worker.place_in_words); }},
    {"", "", "--use-env", "", "torch.distributed.launch's word for what is always so here",
     [](string_view, Options&) { return absl::OkStatus(); }},
    {"", "", "--virtual-local-rank", "", "each worker sees one device and LOCAL_RANK 0",
     [](string_view, Options& options) { return SetFlag(&options.worker.virtual_local_rank); },
     kPet},
    {"", "", "--mpi", "auto|any|pmi|pmix|none",
     "MPI programs are served PMI-1, Open MPI's PMIx (auto: if seen; any: always; none: never)",
     SetMpi},
    {"", "", "--compat", "SET,...", "set variables of openmpi, slurm as well", SetCompat},
    {"", "", "--keep-env", "", "workers inherit also what other launchers set",
     [](string_view, Options& options) { return SetFlag(&options.worker.keep_env); }},
    {"Stalled workers", "", "--heartbeat-timeout", "S",
     "a worker that calls hlaunch.heartbeat(), and then not for so long, has stalled (off)",
     SetHeartbeatTimeout},
    {"", "", "--stall-action", "fail|warn", "it is killed and has failed (fail), or is only named",
     SetStallAction},
    {"", "", "--hang-timeout", "auto|S|off",
     "report a hang after S seconds and name the rank that blocks (auto: adaptive)",
     SetHangTimeout},
    {"", "", "--hang-action", "warn|fail",
     "who holds them up is only named (warn), or killed and has failed", SetHangAction},
    {"", "", "--watch-log", "PATTERN",
     "name who writes such a line; fail:PATTERN: it has failed; metric:PATTERN: read groups",
     AddLineRule, kNoPet, kNoCommas, kRepeats},
    {"", "", "--watch-log-silence", "S:PATTERN",
     "after such a line the next comes within S, or its writer has stalled", AddSilenceRule, kNoPet,
     kNoCommas, kRepeats},
    {"For torchrun's command lines", "", "--monitor-interval", "S",
     "not needed: a worker's end is known at once", SetMonitorInterval, kPet},
    {"", "", "--start-method", "spawn|fork|forkserver", "not needed: workers are programs",
     SetStartMethod, kPet},
    {"", "", "--event-log-handler", "null", "not needed: see --report and --json", SetEventHandler,
     kPet},
    {"", "", "--logs-specs", "default", "not needed; other names are plugins in Python",
     SetLogsSpecs},
};

}  // namespace

absl::Span<const OptionRow> WorkerOptions() { return kWorkerRows; }

}  // namespace hlaunch
