// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/machine/devices/assign_devices.h"
#include "agent/watch/notice/drain_watch.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/parse_int.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/decide/exit_set.h"
#include "rendezvous/round/values/job_policy.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr int kMaxRestarts = 1'000'000;

absl::Status SetNnodes(string_view text, Options& options) {
  const size_t colon = text.find(':');
  const string_view max_text = colon == text.npos ? text : text.substr(colon + 1);
  int min = 0, max = 0;
  if (!ParseInt(text.substr(0, colon), 1, kMaxNodes, &min) ||
      !ParseInt(max_text, 1, kMaxNodes, &max)) {
    return InvalidArgumentError(
        absl::StrCat("expected N or MIN:MAX from 1 to ", kMaxNodes, ", such as 2 or 1:4"));
  }
  if (min > max) {
    return InvalidArgumentError(
        absl::StrCat("MIN is greater than MAX; did you mean ", max, ":", min, "?"));
  }
  options.policy.min_nodes = min;
  options.policy.max_nodes = max;
  return absl::OkStatus();
}

// Returns whether `word` names a part of a host to which workers may be bound.
bool IsBindObject(string_view word) {
  return word == "socket" || word == "numa" || word == "l3" || word == "core";
}

absl::Status SetNproc(string_view text, Options& options) {
  options.nproc_word.clear();
  options.nproc_share.reset();
  // "2:socket=4" is what a host is told: these must be 4 workers.
  const size_t equals = text.find('=');
  int share = 0;
  if (equals != text.npos && text.find(':') < equals &&
      ParseInt(text.substr(equals + 1), 1, kMaxNproc, &share)) {
    options.nproc_share = share;
    text = text.substr(0, equals);
  }
  const std::pair<string_view, string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  int each = 0;
  const bool per_object = ParseInt(parts.first, 1, kMaxNproc, &each) && IsBindObject(parts.second);
  if (text == "auto" || text == "cpu" || per_object || !KindsOfWord(text).empty()) {
    options.nproc = std::nullopt;
    options.nproc_word = std::string(text);
    return absl::OkStatus();
  }
  int nproc = 0;
  if (!ParseInt(text, 1, kMaxNproc, &nproc)) {
    return InvalidArgumentError(
        absl::StrCat("expected a number from 1 to ", kMaxNproc,
                     ", N:socket (numa, l3, core), or auto, cpu, gpu, hpu or xpu"));
  }
  options.nproc = nproc;
  return absl::OkStatus();
}

absl::Status SetMaxRestarts(string_view text, Options& options) {
  if (!ParseInt(text, 0, kMaxRestarts, &options.policy.max_restarts)) {
    return InvalidArgumentError(absl::StrCat("expected a number from 0 to ", kMaxRestarts));
  }
  return absl::OkStatus();
}

absl::Status SetSpares(string_view text, Options& options) {
  if (ParseInt(text, 0, kMaxNodes, &options.policy.spares)) return absl::OkStatus();
  return InvalidArgumentError(absl::StrCat("expected a number from 0 to ", kMaxNodes));
}

absl::Status SetPreflight(string_view text, Options& options) {
  for (const Preflight each : {Preflight::kOff, Preflight::kQuick, Preflight::kFull}) {
    if (text != PreflightName(each)) continue;
    options.policy.preflight = each;
    return absl::OkStatus();
  }
  return InvalidArgumentError("expected off, quick or full");
}

absl::Status SetAction(string_view text, PreflightAction* out) {
  for (const PreflightAction each :
       {PreflightAction::kWarn, PreflightAction::kExclude, PreflightAction::kFail}) {
    if (text != ActionName(each)) continue;
    *out = each;
    return absl::OkStatus();
  }
  return InvalidArgumentError("expected warn, exclude or fail");
}

absl::Status SetOnJoin(string_view text, Options& options) {
  for (const OnJoin each : {OnJoin::kRestart, OnJoin::kNextRound, OnJoin::kIgnore}) {
    if (text != OnJoinName(each)) continue;
    options.policy.on_join = each;
    return absl::OkStatus();
  }
  return InvalidArgumentError("expected restart, next-round or ignore");
}

absl::Status SetOnLoss(string_view text, Options& options) {
  for (const OnLoss each : {OnLoss::kShrink, OnLoss::kWait, OnLoss::kFail}) {
    if (text != OnLossName(each)) continue;
    options.policy.on_loss = each;
    return absl::OkStatus();
  }
  return InvalidArgumentError("expected shrink, wait or fail");
}

absl::Status SetNodeMultiple(string_view text, Options& options) {
  if (ParseInt(text, 1, kMaxNodes, &options.policy.node_multiple)) return absl::OkStatus();
  return InvalidArgumentError(absl::StrCat("expected a number from 1 to ", kMaxNodes));
}

absl::Status SetPreflightShare(string_view text, Options& options) {
  if (ParseInt(text, 0, 100, &options.policy.preflight_share)) return absl::OkStatus();
  return InvalidArgumentError("expected a number of percent from 0 to 100");
}

absl::Status SetMaxStuckRestarts(string_view text, Options& options) {
  if (ParseInt(text, 0, kMaxRestarts, &options.policy.max_stuck_restarts)) return absl::OkStatus();
  return InvalidArgumentError("expected how many restarts in a row, or 0 for no limit");
}

absl::Status SetFailures(string_view text, std::string* out) {
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError(
        "it names no failure: is a variable unset? any means all; else leave the option out");
  }
  HLAUNCH_RETURN_IF_ERROR(ExitSet::Parse(text).status());
  *out = std::string(text);
  return absl::OkStatus();
}

absl::Status SetDrainUrl(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.drain.url, ParseNoticeUrl(text));
  return absl::OkStatus();
}

absl::Status SetHealthInterval(string_view text, Options& options) {
  constexpr double kLeast = 0.1;  // Seconds.
  options.health_interval = Duration::zero();
  if (text == "0") return absl::OkStatus();
  const absl::StatusOr<Duration> interval = ParseTimeout(text, kLeast);
  if (!interval.ok()) {
    return InvalidArgumentError(absl::StrCat(
        "expected 0 for never, or ", absl::StripPrefix(interval.status().message(), "expected ")));
  }
  options.health_interval = *interval;
  return absl::OkStatus();
}

const OptionRow kNodeRows[] = {
    {"Nodes and workers", "", "--config", "FILE",
     "JSON with these options, maybe the script as well: {\"nnodes\": 2, \"command\": "
     "[\"train.py\"]}; "
     "what is typed beats it, and it beats PET_*",
     nullptr},
    {"", "", "--nnodes", "N|MIN:MAX", "number of nodes (1)", SetNnodes, kPet},
    {"", "", "--nproc-per-node", "N|WORD",
     "workers on this node (1), on one node also -n N; gpu, hpu, xpu: one for each; cpu: for each "
     "usable CPU; auto: for each device, or CPU; N:socket (numa, l3, core): N for each",
     SetNproc, kPet},
    {"", "", "--max-restarts", "N", "restarts after failures, for the whole job (0)",
     SetMaxRestarts, kPet},
    {"", "", "--max-stuck-restarts", "N",
     "end the job once N restarts in a row bring it no further by its steps (0: never)",
     SetMaxStuckRestarts},
    {"", "", "--restart-window", "S",
     "time after which a restart no longer counts against --max-restarts (default: never)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.policy.restart_window);
     }},
    {"", "", "--restart-pause", "S",
     "before a restart; doubles with each that follows within 10 minutes, up to 5 (0)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.policy.restart_pause);
     }},
    {"", "", "--restart-on", "LIST",
     "restart after these failures only: 1,64-78,SIGKILL, oom, hang, node, any (any)",
     [](string_view text, Options& options) {
       return SetFailures(text, &options.policy.restart_on);
     }},
    {"", "", "--end-on", "LIST", "end the job after these, whatever restarts are left (none)",
     [](string_view text, Options& options) { return SetFailures(text, &options.policy.end_on); }},
    {"", "", "--free-on", "LIST", "a restart after these counts against no --max-restarts (none)",
     [](string_view text, Options& options) { return SetFailures(text, &options.policy.free_on); }},
    {"", "", "--spares", "N", "nodes beyond --nnodes that stand by (0)", SetSpares},
    {"", "", "--node-multiple", "N",
     "a round has a multiple of N nodes, such as 2, 4 or 6 of --nnodes 2:6 with 2 (1)",
     SetNodeMultiple},
    {"", "", "--on-join", "restart|next-round|ignore",
     "a node joins a round that is smaller than MAX: it ends at a checkpoint, or the node waits "
     "for the next; ignore: to replace a lost one only (restart)",
     SetOnJoin},
    {"", "", "--on-loss", "shrink|wait|fail",
     "a node is lost and MIN are there: go on without it, wait for another until --join-timeout, "
     "or end the job (shrink)",
     SetOnLoss},
    {"", "", "--preflight", "off|quick|full",
     "check before workers start that all reach the store and no node is bad (quick)",
     SetPreflight},
    {"", "", "--preflight-action", "warn|exclude|fail",
     "what becomes of a bad node, as long as there are enough without it (exclude)",
     [](string_view text, Options& options) {
       return SetAction(text, &options.policy.preflight_action);
     }},
    {"", "", "--preflight-share", "PERCENT",
     "largest share of nodes to exclude as bad, at least one (default 25)", SetPreflightShare},
    {"", "", "--health-interval", "S",
     "while workers run, check the nodes so often and name what becomes worse; 0: never (60)",
     SetHealthInterval},
    {"", "", "--on-partition", "warn|exclude|fail",
     "what becomes of nodes that the others do not reach while workers run (exclude)",
     [](string_view text, Options& options) {
       return SetAction(text, &options.policy.on_partition);
     }},
    {"", "", "--drain-file", "FILE",
     "once FILE is there, another node takes this one's place; its first line says why",
     [](string_view text, Options& options) { return SetFile(text, &options.drain.file); }},
    {"", "", "--drain-url", "URL",
     "the same once URL, of a cloud's metadata service, answers with a notice (http, an address)",
     SetDrainUrl},
};

}  // namespace

absl::Span<const OptionRow> NodeOptions() { return kNodeRows; }

}  // namespace hlaunch
