// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/parse_int.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/job_policy.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr size_t kMaxJobId = 256;

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

absl::Status SetNodeRank(string_view text, Options& options) {
  int rank = 0;
  if (!ParseInt(text, 0, kMaxNodes - 1, &rank)) {
    return InvalidArgumentError("expected a number from 0 to the number of nodes less 1");
  }
  options.node.rank = rank;
  return absl::OkStatus();
}

absl::Status SetTls(string_view text, Options& options) {
  if (text != "on" && text != "off") return InvalidArgumentError("expected on or off");
  options.meeting.tls = std::string(text);
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

const OptionRow kRendezvousRows[] = {
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
};

}  // namespace

absl::Span<const OptionRow> RendezvousOptions() { return kRendezvousRows; }

}  // namespace hlaunch
