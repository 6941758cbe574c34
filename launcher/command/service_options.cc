// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/service_options.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/options/command_table.h"
#include "launcher/options/help_text.h"
#include "launcher/options/option_values.h"
#include "launcher/options/read_words.h"
#include "launcher/words/printable.h"
#include "launcher/words/version.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

constexpr char kCommand[] = "hlaunch-rendezvous";
constexpr int kMostJobs = 100'000;
constexpr uint16_t kEtcdPort = 2379;

std::string HelpText() {
  return absl::StrCat(
      "usage: hlaunch-rendezvous [options]\n\n"
      "The rendezvous of many jobs as a service: says who is in which round, and holds no worker.\n"
      "A job begins with the first `hlaunch --rdzv-endpoint HOST:PORT --rdzv-id ID` that comes,\n"
      "and with the rules which that one brings along (--nnodes, --max-restarts, times).\n\n",
      DescribeOptions(ServiceOptionRows()),
      "\nWith --state, a job goes on where it stood when this service or its host ended, however "
      "it\n"
      "ended: agents wait for it as long as their --loss-limit, and their workers never notice.\n"
      "With etcd several services may run: one leads, and another takes over within seconds.\n"
      "Without, its end is the end of its jobs. SIGTERM and SIGINT stop it; jobs go on as above.\n"
      "\nExamples:\n"
      "  hlaunch-rendezvous --state file:///var/lib/hlaunch\n"
      "  hlaunch-rendezvous --state etcd://e1,e2,e3                         on two hosts or more\n"
      "  hlaunch --nnodes 2 --rdzv-endpoint HOST --rdzv-id 17 train.py      on each node\n"
      "  hlaunch status 17 --rdzv-endpoint HOST                             why does it not "
      "start?\n"
      "\nExit code: 0 when stopped; 2 wrong usage, or a state directory that cannot be used; ",
      kExitBadEndpoint, "\nand ", kExitPortInUse, " it cannot listen there, ", kExitNoResources,
      " out of descriptors or memory.\n");
}

std::string Versions(bool inside) {
  return absl::StrCat(kCommand, " ", VersionText(), "\n", inside ? kBuiltWith : "");
}

bool IsPort(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

absl::StatusOr<Endpoint> ParseListen(absl::string_view text) {
  // A port alone stands for all addresses.
  const bool port_only = IsPort(text) || (absl::StartsWith(text, ":") && IsPort(text.substr(1)));
  const std::string whole =
      port_only ? absl::StrCat("[::]:", absl::StripPrefix(text, ":")) : std::string(text);
  absl::StatusOr<Endpoint> endpoint = ParseEndpoint(whole, kDefaultRdzvPort);
  if (endpoint.ok() && endpoint->host == "::") endpoint->host.clear();
  return endpoint;
}

absl::Status Wrong(absl::string_view name, absl::string_view value, const absl::Status& status) {
  return InvalidArgumentError(
      absl::StrCat(name, " '", PrintableLine(value), "': ", status.message()));
}

absl::StatusOr<std::string> ParseDirectory(absl::string_view text) {
  absl::ConsumePrefix(&text, "file://");
  if (absl::StrContains(text, "://") || text.empty()) {
    return InvalidArgumentError("expected file://DIR, a directory, or etcd://HOST:PORT,HOST:PORT");
  }
  return std::string(text);
}

// HOST:PORT,…[/PREFIX].
absl::StatusOr<EtcdState> ParseEtcd(absl::string_view text) {
  EtcdState state;
  const size_t slash = text.find('/');
  if (slash != text.npos && slash + 1 < text.size()) state.prefix = std::string(text.substr(slash));
  while (absl::EndsWith(state.prefix, "/")) state.prefix.pop_back();
  for (const absl::string_view member : absl::StrSplit(text.substr(0, slash), ',')) {
    HLAUNCH_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(member, kEtcdPort));
    state.members.push_back(endpoint);
  }
  return state;
}

absl::Status SetState(const TypedWords& read, ServiceOptions* options) {
  const std::string text = read.Get("--state", "");
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "etcd://")) {
    for (const char* name : {"--state-ca", "--state-cert", "--state-key", "--state-user-file"}) {
      if (read.Has(name)) {
        return InvalidArgumentError(absl::StrCat(name, " is for --state etcd:// alone"));
      }
    }
    if (!read.Has("--state")) return absl::OkStatus();
    const absl::StatusOr<std::string> directory = ParseDirectory(text);
    if (!directory.ok()) return Wrong("--state", text, directory.status());
    options->state_directory = *directory;
    return absl::OkStatus();
  }
  absl::StatusOr<EtcdState> etcd = ParseEtcd(rest);
  if (!etcd.ok()) return Wrong("--state", text, etcd.status());
  options->etcd = *std::move(etcd);
  options->etcd->tls = {read.Get("--state-cert", ""), read.Get("--state-key", ""),
                        read.Get("--state-ca", "")};
  options->etcd->user_file = read.Get("--state-user-file", "");
  if (read.Has("--state-cert") != read.Has("--state-key")) {
    return InvalidArgumentError("--state-cert and --state-key go together");
  }
  if (read.Has("--state-cert") && !read.Has("--state-ca")) {
    return InvalidArgumentError("--state-cert needs --state-ca, whom this service believes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServiceOptions> ParseServiceOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read,
                           ReadWords(kCommand, ServiceOptionRows(), words, OptionPlace::kAnywhere));
  ServiceOptions options;
  if (read.Has("--help") || read.Has("--version")) {
    options.text_to_print = read.Has("--help") ? HelpText() : Versions(read.Has("--verbose"));
    return options;
  }
  if (!read.rest.empty()) {
    return InvalidArgumentError(
        absl::StrCat("what is ", PrintableLine(read.rest[0]), "? see hlaunch-rendezvous --help"));
  }
  if (read.Has("--listen")) {
    const std::string text = read.Get("--listen", "");
    const absl::StatusOr<Endpoint> listen = ParseListen(text);
    if (!listen.ok()) return Wrong("--listen", text, listen.status());
    options.listen = *listen;
  }
  HLAUNCH_RETURN_IF_ERROR(SetState(read, &options));
  if (read.Has("--metrics-port")) {
    const std::string text = read.Get("--metrics-port", "");
    const absl::StatusOr<Endpoint> metrics = ParseMetricsPlace(text);
    if (!metrics.ok()) return Wrong("--metrics-port", text, metrics.status());
    options.metrics = *metrics;
  }
  options.token_file = read.Get("--token-file", "");
  options.certificates = {read.Get("--tls-cert", ""), read.Get("--tls-key", ""),
                          read.Get("--tls-ca", "")};
  options.tls = read.Get("--tls", "");
  const std::string max_jobs = read.Get("--max-jobs", absl::StrCat(options.max_jobs));
  if (!IsPort(max_jobs) || !absl::SimpleAtoi(max_jobs, &options.max_jobs) || options.max_jobs < 1 ||
      options.max_jobs > kMostJobs) {
    return Wrong("--max-jobs", max_jobs,
                 InvalidArgumentError(absl::StrCat("expected a number from 1 to ", kMostJobs)));
  }
  if (read.Has("--verbose") && read.Has("--quiet")) {
    return InvalidArgumentError("--verbose and --quiet: leave one of them out");
  }
  if (read.Has("--verbose")) options.log_level = LogLevel::kDebug;
  if (read.Has("--quiet")) options.log_level = LogLevel::kWarning;
  return options;
}

}  // namespace hlaunch
