// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/machine/devices/assign_devices.h"
#include "agent/watch/notice/drain_watch.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/environment/scheduler/system_row.h"
#include "launcher/text/endpoint.h"
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
constexpr size_t kMaxJobId = 256;

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

absl::Status SetEndpoint(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<Endpoint> all, ParseEndpoints(text, kDefaultRdzvPort));
  options.meeting.endpoint = all.front();
  options.meeting.other_endpoints.assign(all.begin() + 1, all.end());
  return absl::OkStatus();
}

absl::Status SetBackend(string_view text, Options& options) {
  if (text != "static" && text != "c10d") {
    const bool etcd = text == "etcd" || text == "etcd-v2";
    return InvalidArgumentError(
        etcd ? "hlaunch needs no etcd to meet; use c10d, with the same endpoint's host, or static"
             : "expected static or c10d; other backends are not needed here");
  }
  options.meeting.backend = std::string(text);
  return absl::OkStatus();
}

absl::Status SetJobId(string_view text, Options& options) {
  const bool printable = std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
  if (text.empty() || text.size() > kMaxJobId || !printable) {
    return InvalidArgumentError(
        absl::StrCat("expected 1 to ", kMaxJobId, " printable characters without spaces"));
  }
  options.meeting.job_id = std::string(text);
  return absl::OkStatus();
}

absl::Status SetMasterAddr(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.meeting.master_addr, ParseHost(text));
  return absl::OkStatus();
}

absl::Status SetLocalAddr(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.meeting.local_addr, ParseHost(text));
  return absl::OkStatus();
}

absl::Status SetMasterPort(string_view text, Options& options) {
  int port = 0;
  if (!ParseInt(text, 0, 65535, &port)) {
    return InvalidArgumentError("expected a port from 0 to 65535");
  }
  options.meeting.master_port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

absl::Status SetMasterStore(string_view text, Options& options) {
  if (text != "agent" && text != "worker") return InvalidArgumentError("expected agent or worker");
  options.store.in_worker = text == "worker";
  return absl::OkStatus();
}

absl::Status SetProxy(bool wanted, Options& options) {
  if (options.store.proxy.value_or(wanted) != wanted) {
    return InvalidArgumentError("the other one of --store-proxy and --no-store-proxy is given too");
  }
  options.store.proxy = wanted;
  return absl::OkStatus();
}

absl::Status SetNodeRank(string_view text, Options& options) {
  int rank = 0;
  if (!ParseInt(text, 0, kMaxNodes - 1, &rank)) {
    return InvalidArgumentError("expected a number from 0 to the number of nodes less 1");
  }
  options.node.rank = rank;
  return absl::OkStatus();
}

absl::Status SetMaxRestarts(string_view text, Options& options) {
  if (!ParseInt(text, 0, kMaxRestarts, &options.policy.max_restarts)) {
    return InvalidArgumentError(absl::StrCat("expected a number from 0 to ", kMaxRestarts));
  }
  return absl::OkStatus();
}

absl::Status SetFile(string_view text, std::string* file) {
  if (text.empty()) return InvalidArgumentError("the name of the file is missing");
  *file = std::string(text);
  return absl::OkStatus();
}

absl::Status SetTls(string_view text, Options& options) {
  if (text != "on" && text != "off") return InvalidArgumentError("expected on or off");
  options.meeting.tls = std::string(text);
  return absl::OkStatus();
}

absl::Status SetDuration(string_view text, double min_seconds, Duration* out) {
  HLAUNCH_ASSIGN_OR_RETURN(*out, ParseTimeout(text, min_seconds));
  return absl::OkStatus();
}

absl::Status SetIsHost(string_view text, Options& options) {
  const std::string word = absl::AsciiStrToLower(text);
  const auto any_of = [&word](std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool yes = any_of({"1", "true", "t", "yes", "y"});
  if (!yes && !any_of({"0", "false", "f", "no", "n"})) {
    return InvalidArgumentError("expected 1, true, 0 or false");
  }
  options.node.is_host = yes;
  return absl::OkStatus();
}

struct ConfRow {
  const char* key;
  absl::Status (*set)(string_view value, Options& options);  // Null: hlaunch ignores the key.
};

const ConfRow kConf[] = {
    {"is_host", SetIsHost},
    {"join_timeout",
     [](string_view text, Options& options) {
       return SetDuration(text, 1, &options.policy.join_timeout);
     }},
    {"last_call_timeout",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.policy.last_call);
     }},
    {"timeout", nullptr},
    {"read_timeout", nullptr},
    {"close_timeout", nullptr},
    {"heartbeat_timeout", nullptr},
    {"keep_alive_interval", nullptr},
    {"keep_alive_max_attempt", nullptr},
    {"cas_backoff_max_seconds", nullptr},
    {"store_type", nullptr},
    {"use_libuv", nullptr},
    {"rank", nullptr},  // --node-rank says it, as in torchrun.
};

absl::Status SetConfEntry(string_view entry, Options& options) {
  const size_t equals = entry.find('=');
  if (equals == entry.npos) return InvalidArgumentError("expected KEY=VALUE, KEY=VALUE, ...");
  const string_view key = absl::StripAsciiWhitespace(entry.substr(0, equals));
  const string_view value = absl::StripAsciiWhitespace(entry.substr(equals + 1));
  std::string known;
  for (const ConfRow& row : kConf) {
    if (key != row.key) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", row.key);
      continue;
    }
    if (row.set == nullptr) {
      options.unneeded_conf.emplace_back(key);
      return absl::OkStatus();
    }
    const absl::Status status = row.set(value, options);
    if (status.ok()) return status;
    return InvalidArgumentError(absl::StrCat(row.key, ": ", status.message()));
  }
  if (options.program == "torchrun") {  // torchrun ignores it as well.
    options.unneeded_conf.emplace_back(key);
    return absl::OkStatus();
  }
  return InvalidArgumentError(absl::StrCat("unknown key; known are ", known));
}

// Returns `text` without quotes around it, which a list of arguments carries along where a shell
// would have taken them away.
string_view Unquoted(string_view text) {
  const bool quoted = text.size() > 1 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

absl::Status SetRdzvConf(string_view text, Options& options) {
  text = Unquoted(text);
  for (const string_view entry : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    HLAUNCH_RETURN_IF_ERROR(SetConfEntry(entry, options));
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

absl::Status SetHostLoss(string_view text, Options& options) {
  options.on_host_loss.reset();
  if (text == "auto") return absl::OkStatus();
  for (const HostLoss each : {HostLoss::kEnd, HostLoss::kWait, HostLoss::kContinue}) {
    if (text != HostLossName(each)) continue;
    options.on_host_loss = each;
    return absl::OkStatus();
  }
  return InvalidArgumentError("expected auto, end, wait or continue");
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

absl::Status SetSize(string_view text, int64_t max, size_t* out) {
  HLAUNCH_ASSIGN_OR_RETURN(*out, ParseSize(text, 1, max));
  return absl::OkStatus();
}

const OptionRow kRendezvousRows[] = {
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
     "a node joins a round that is smaller than MAX: it ends at a good moment, or the node waits "
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
    {"Where the nodes meet", "", "--rdzv-endpoint", "HOST[:PORT],...",
     "the same on every node (port 29400); its owner hosts; several: services of which one leads",
     SetEndpoint, kPet},
    {"", "", "--rdzv-id", "ID", "id of the job, the same on every node", SetJobId, kPet},
    {"", "", "--rdzv-backend", "NAME", "static or c10d, as for torchrun", SetBackend, kPet},
    // Before the options of the same meaning: they win because they are set later.
    {"", "", "--rdzv-conf", "K=V,...", "is_host=1, join_timeout=S, last_call_timeout=S",
     SetRdzvConf, kPet},
    {"", "", "--node-rank", "N", "this node's rank; else the rendezvous decides", SetNodeRank,
     kPet},
    {"", "", "--master-addr", "HOST", "static form: node rank 0 hosts the rendezvous there",
     SetMasterAddr, kPet},
    {"", "", "--master-port", "PORT", "static form: its port, and MASTER_PORT of workers (29500)",
     SetMasterPort, kPet},
    {"", "", "--master-store", "agent|worker",
     "who serves at MASTER_PORT: hlaunch (agent), or rank 0 itself", SetMasterStore},
    {"", "", "--local-addr", "HOST", "what this node is reached at (the way to the others decides)",
     SetLocalAddr, kPet},
    Excluding("--nnodes --node-rank", nullptr,
              {"", "", "--standalone", "", "run on this node only; the same as --nnodes 1",
               SetNothing, kPet}),
    {"", "", "--token-file", "FILE",
     "secret that all nodes share (HLAUNCH_TOKEN_FILE, HLAUNCH_TOKEN, ~/.config/hlaunch/token; see "
     "hlaunch token)",
     [](string_view text, Options& options) { return SetFile(text, &options.meeting.token_file); }},
    {"", "", "--tls", "on|off",
     "off: nodes prove to each other that they have the token, and encrypt nothing (HLAUNCH_TLS, "
     "on)",
     SetTls},
    {"", "", "--tls-cert", "FILE",
     "this host's own certificate, in PEM, instead of a token (HLAUNCH_TLS_CERT)",
     [](string_view text, Options& options) {
       return SetFile(text, &options.meeting.certificates.certificate);
     }},
    {"", "", "--tls-key", "FILE", "the certificate's key (HLAUNCH_TLS_KEY)",
     [](string_view text, Options& options) {
       return SetFile(text, &options.meeting.certificates.key);
     }},
    {"", "", "--tls-ca", "FILE", "trusted CA certificates (HLAUNCH_TLS_CA)",
     [](string_view text, Options& options) {
       return SetFile(text, &options.meeting.certificates.authority);
     }},
    {"Times", "", "--join-timeout", "S", "wait this long for the nodes to come (600)",
     [](string_view text, Options& options) {
       return SetDuration(text, 1, &options.policy.join_timeout);
     }},
    {"", "", "--last-call", "S", "from MIN nodes there to the start without MAX (30)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.policy.last_call);
     }},
    {"", "", "--grow-interval", "S", "between two ends of rounds for nodes that joined (60)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.policy.grow_interval);
     }},
    {"", "", "--boundary-limit", "S",
     "a round that is to grow waits so long for hlaunch.at_boundary(), if the script calls it "
     "(600)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.policy.boundary_limit);
     }},
    {"", "", "--timeout", "S", "end the job after so long, with exit code 254 (never)",
     [](string_view text, Options& options) { return SetDuration(text, 1, &options.time_limit); }},
    {"", "", "--shutdown-timeout", "S", "from SIGTERM to SIGKILL for workers (30)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.worker.stop_grace);
     },
     kPet},
    {"", "", "--loss-limit", "S", "a node cut off for so long stops its workers (30)",
     [](string_view text, Options& options) {
       return SetDuration(text, 1, &options.policy.lease.loss_limit);
     }},
    {"", "", "--on-host-loss", "auto|end|wait|continue",
     "the node dies that hosts the rendezvous: the job ends, or another node leads it; of two, "
     "wait for proof of that death, or continue after a time (auto: wait if restarts are left)",
     SetHostLoss},
    {"Master store", "", "--store-allow", "WHO",
     "who may use the master store: members (the job's user on the round's nodes), all, "
     "10.0.0.0/16, ... (members)",
     [](string_view text, Options& options) {
       HLAUNCH_ASSIGN_OR_RETURN(options.store.server.access, ParseStoreAllow(text));
       return absl::OkStatus();
     }},
    {"", "", "--store-dialect", "WIRE", "torch1.13, torch2.1, torch2.2+, or as workers show (auto)",
     [](string_view text, Options& options) {
       HLAUNCH_ASSIGN_OR_RETURN(options.store.server.older, ParseC10dDialect(text));
       return absl::OkStatus();
     }},
    Excluding("--no-store-proxy", nullptr,
              {"", "", "--store-proxy", "",
               "workers reach it through their own agent, encrypted with a token or --tls-cert; "
               "MASTER_ADDR is then 127.0.0.1",
               [](string_view, Options& options) { return SetProxy(true, options); }}),
    {"", "", "--no-store-proxy", "",
     "workers reach it themselves, in clear, at MASTER_ADDR (the default)",
     [](string_view, Options& options) { return SetProxy(false, options); }},
    {"", "", "--any-user", "",
     "all users of the job's hosts may use its store, MPI servers and page, as for containers that "
     "run as other users (only the job's user and root)",
     [](string_view, Options& options) {
       options.worker.any_user = true;
       return absl::OkStatus();
     }},
    {"", "", "--store-max-key", "SIZE", "longest key that the master store takes (8K)",
     [](string_view text, Options& options) {
       return SetSize(text, 64 << 20, &options.store.server.limits.key_bytes);
     }},
    {"", "", "--store-max-value", "SIZE", "largest value that it takes (8M)",
     [](string_view text, Options& options) {
       return SetSize(text, 1 << 30, &options.store.server.limits.value_bytes);
     }},
    {"", "", "--store-max-total", "SIZE", "what all its keys and values may take (1G)",
     [](string_view text, Options& options) {
       return SetSize(text, int64_t{1} << 40, &options.store.server.limits.total_bytes);
     }},
};

absl::Status SetCluster(absl::string_view text, Options& options) {
  const std::vector<std::string> words = ClusterWords(options.cluster_systems);
  if (std::find(words.begin(), words.end(), text) == words.end()) {
    return absl::InvalidArgumentError(absl::StrCat("expected one of ", absl::StrJoin(words, ", ")));
  }
  options.cluster = std::string(text);
  return absl::OkStatus();
}

absl::Status SetClusterFile(absl::string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.cluster_systems, ReadSystems(std::string(text)));
  return absl::OkStatus();
}

absl::Status SetPlacingHosts(absl::string_view text, Options& options) {
  if (text.find_first_not_of("0123456789:") == text.npos) {
    return absl::InvalidArgumentError(
        "expected names of hosts, as in node1,node2; how many nodes there are, --nnodes says");
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<TargetHost> hosts, ParseHosts(text));
  options.placing.hosts.clear();
  for (const TargetHost& host : hosts) {
    if (!host.user.empty() || host.slots.has_value()) {
      return absl::InvalidArgumentError("expected names of hosts alone, as in node1,node2");
    }
    options.placing.hosts.push_back(host.name);
  }
  return absl::OkStatus();
}

absl::Status SetLabels(absl::string_view text, Options& options) {
  options.placing.labels = absl::StrSplit(text, ',');
  for (const std::string& label : options.placing.labels) {
    if (label.empty()) return absl::InvalidArgumentError("expected labels, as in a100,ib");
  }
  return absl::OkStatus();
}

const OptionRow kClusterRows[] = {
    {"In a cluster", "", "--cluster", "NAME",
     "whose variables say this node's place: auto, none, slurm, ...; hlaunchd: start the job on "
     "free hosts of this host's cluster",
     SetCluster},
    {"", "", "--nodes", "a,b", "of the cluster of hlaunchd, only these hosts", SetPlacingHosts},
    {"", "", "--constraint", "LABEL,...",
     "only hosts that have all of these labels (hlaunch nodes)", SetLabels},
    {"", "", "--exclusive", "", "no other job on the job's hosts",
     [](string_view, Options& options) { return SetFlag(&options.placing.exclusive); }},
    {"", "", "--cluster-file", "FILE",
     "a site's own systems and their variables, as JSON (HLAUNCH_CLUSTER_FILE)", SetClusterFile},
    {"", "", "--explain-cluster", "",
     "print what was found of this node's place, and from where; --json", nullptr},
};

absl::Status SetHostText(string_view text, std::string HostWish::*place, Options& options) {
  if (text.empty()) return absl::InvalidArgumentError("expected a value");
  options.hosts.*place = std::string(text);
  return absl::OkStatus();
}

absl::Status AddVariable(string_view text, Options& options) {
  if (text.empty()) return absl::InvalidArgumentError("expected VAR or VAR=VALUE");
  options.hosts.variables.emplace_back(text);
  return absl::OkStatus();
}

const OptionRow kHostRows[] = {
    {"Hosts to start from here", "-H", "--hosts", "a,b:4,c[01-16]",
     "start the job on these hosts; behind a colon the workers of each (HLAUNCH_HOSTS); "
     "allocation: those of the scheduler's job",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::hosts, options);
     }},
    {"", "", "--hostfile", "FILE", "the hosts of a file, as Open MPI, MPICH or Slurm write it",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::hostfile, options);
     }},
    {"", "", "--include", "HOSTS", "of these hosts, only those",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::include, options);
     }},
    {"", "", "--exclude", "HOSTS", "of these hosts, all but those",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::exclude, options);
     }},
    {"", "", "--launch-agent", "'CMD %h ...'",
     "instead of ssh: a command that runs words on the host %h (kubectl exec -i %h --)",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::launch_agent, options);
     }},
    {"", "", "--agent-path", "PATH", "where hlaunch is on the hosts (where it is here)",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::agent_path, options);
     }},
    {"", "", "--push", "",
     "where a host has no hlaunch, or another one, send it this one for the job",
     [](string_view, Options& options) {
       options.hosts.push = true;
       return absl::OkStatus();
     }},
    {"", "", "--detach", "",
     "once all nodes are here, go on without this terminal, on one host too (hlaunch attach)",
     [](string_view, Options& options) { return SetFlag(&options.detach); }},
    {"", "-x", "--export-var", "VAR[=VALUE]",
     "workers get this variable as well, on all hosts; may be repeated", AddVariable, kNoPet,
     kNoCommas, kRepeats},
    {"", "", "--export", "all|none|LIST",
     "which variables of here workers get (on one host all; else paths and settings, no secrets)",
     [](string_view text, Options& options) {
       return SetHostText(text, &HostWish::exported, options);
     }},
};

}  // namespace

absl::Span<const OptionRow> HostOptions() { return kHostRows; }

absl::Span<const OptionRow> RendezvousOptions() { return kRendezvousRows; }

absl::Span<const OptionRow> ClusterOptions() { return kClusterRows; }

}  // namespace hlaunch
