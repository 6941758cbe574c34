// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/service_options.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/version.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

constexpr char kServiceProgram[] = "hlaunch-rendezvous";
constexpr int kMostJobs = 100'000;
constexpr uint16_t kEtcdPort = 2379;

std::string ServiceHelp() {
  return absl::StrCat(
      "usage: hlaunch-rendezvous [options]\n\n"
      "Forms the rounds of many jobs, as a service; runs no workers.\n"
      "A job begins with the first `hlaunch --rdzv-endpoint HOST:PORT --rdzv-id ID` that comes,\n"
      "and with the rules which that one brings along (--nnodes, --max-restarts, times).\n\n",
      DescribeOptions(ServiceOptionRows()),
      "\nWith --state, a job goes on where it stood when this service or its host ended, however "
      "it\n"
      "ended: agents wait for it as long as their --loss-limit, and their workers never notice.\n"
      "With etcd or Kubernetes several services may run: one leads, and another takes over within\n"
      "seconds.\n"
      "Without, its end is the end of its jobs. SIGTERM and SIGINT stop it; jobs go on as above.\n"
      "\nExamples:\n"
      "  hlaunch-rendezvous --state file:///var/lib/hlaunch\n"
      "  hlaunch-rendezvous --state etcd://e1,e2,e3                         on two hosts or more\n"
      "  hlaunch-rendezvous --state k8s://                                  in two pods or more\n"
      "  hlaunch --nnodes 2 --rdzv-endpoint HOST --rdzv-id 17 train.py      on each node\n"
      "  hlaunch status 17 --rdzv-endpoint HOST                             why does it not "
      "start?\n"
      "\nExit code: 0 when stopped; 2 wrong usage, or a state directory that cannot be used; ",
      kExitBadEndpoint, "\nand ", kExitPortInUse, " it cannot listen there, ", kExitNoResources,
      " out of descriptors or memory.\n");
}

std::string Versions(bool inside) {
  return absl::StrCat(kServiceProgram, " ", VersionText(), "\n", inside ? kBuiltWith : "");
}

absl::Status Wrong(absl::string_view name, absl::string_view value, const absl::Status& status) {
  return InvalidArgumentError(
      absl::StrCat(name, " '", PrintableLine(value), "': ", status.message()));
}

absl::StatusOr<std::string> ParseDirectory(absl::string_view text) {
  absl::ConsumePrefix(&text, "file://");
  if (absl::StrContains(text, "://") || text.empty()) {
    return InvalidArgumentError(
        "expected file://DIR, a directory, etcd://HOST:PORT,HOST:PORT, or k8s://NAMESPACE");
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

// A name that Kubernetes takes for a namespace (RFC 1123).
bool IsLabel(absl::string_view text) {
  constexpr size_t kLongest = 63;
  const auto fits = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  };
  return !text.empty() && text.size() <= kLongest && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), fits);
}

// [NAMESPACE][/NAME].
absl::StatusOr<KubernetesState> ParseKubernetes(absl::string_view text) {
  KubernetesState state;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  state.name_space = std::string(parts[0]);
  if (parts.size() > 1 && !parts[1].empty()) state.name = std::string(parts[1]);
  for (const std::string& name : {state.name_space, state.name}) {
    if (name.empty() || IsLabel(name)) continue;
    return InvalidArgumentError(
        "expected k8s://[NAMESPACE][/NAME], with names of small letters, digits and hyphens");
  }
  return state;
}

// https://HOST[:PORT], or http:// to this host.
absl::Status SetApi(absl::string_view url, KubernetesState* state) {
  state->tls = absl::ConsumePrefix(&url, "https://");
  if (!state->tls && !absl::ConsumePrefix(&url, "http://")) {
    return InvalidArgumentError("expected https://HOST:PORT, or http://127.0.0.1:PORT of a proxy");
  }
  absl::ConsumeSuffix(&url, "/");
  HLAUNCH_ASSIGN_OR_RETURN(state->api, ParseEndpoint(url, state->tls ? 443 : 80));
  if (state->tls || state->api->host == "localhost" || IsLoopbackLiteral(state->api->host)) {
    return absl::OkStatus();
  }
  return InvalidArgumentError("http:// is for a proxy on this host alone");
}

// Refuses --state-… options that do not fit this kind of place.
absl::Status CheckStateWords(const TypedWords& read, bool etcd, bool kubernetes) {
  struct Row {
    const char* name;
    bool fits;
    const char* place;
  };
  for (const Row& row :
       {Row{"--state-ca", etcd || kubernetes, "etcd:// or k8s://"},
        Row{"--state-cert", etcd, "etcd://"}, Row{"--state-key", etcd, "etcd://"},
        Row{"--state-user-file", etcd, "etcd://"}, Row{"--state-api", kubernetes, "k8s://"},
        Row{"--state-token-file", kubernetes, "k8s://"}}) {
    if (read.Has(row.name) && !row.fits) {
      return InvalidArgumentError(absl::StrCat(row.name, " is for --state ", row.place, " alone"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetEtcd(const TypedWords& read, EtcdState* etcd) {
  etcd->tls = {read.Get("--state-cert", ""), read.Get("--state-key", ""),
               read.Get("--state-ca", "")};
  etcd->user_file = read.Get("--state-user-file", "");
  if (read.Has("--state-cert") != read.Has("--state-key")) {
    return InvalidArgumentError("--state-cert and --state-key go together");
  }
  if (read.Has("--state-cert") && !read.Has("--state-ca")) {
    return InvalidArgumentError("--state-cert needs --state-ca, whom this service believes");
  }
  return absl::OkStatus();
}

absl::Status SetKubernetes(const TypedWords& read, KubernetesState* state) {
  state->authority_file = read.Get("--state-ca", "");
  state->token_file = read.Get("--state-token-file", "");
  if (!read.Has("--state-api")) return absl::OkStatus();
  const std::string url = read.Get("--state-api", "");
  const absl::Status set = SetApi(url, state);
  if (!set.ok()) return Wrong("--state-api", url, set);
  if (state->tls && state->authority_file.empty()) {
    return InvalidArgumentError(
        "--state-api with https:// needs --state-ca, whom this service believes");
  }
  return absl::OkStatus();
}

absl::Status SetState(const TypedWords& read, ServiceOptions* options) {
  const std::string text = read.Get("--state", "");
  absl::string_view rest = text;
  const bool etcd = absl::ConsumePrefix(&rest, "etcd://");
  const bool kubernetes = !etcd && absl::ConsumePrefix(&rest, "k8s://");
  HLAUNCH_RETURN_IF_ERROR(CheckStateWords(read, etcd, kubernetes));
  if (etcd) {
    absl::StatusOr<EtcdState> state = ParseEtcd(rest);
    if (!state.ok()) return Wrong("--state", text, state.status());
    options->etcd = *std::move(state);
    return SetEtcd(read, &*options->etcd);
  }
  if (kubernetes) {
    absl::StatusOr<KubernetesState> state = ParseKubernetes(rest);
    if (!state.ok()) return Wrong("--state", text, state.status());
    options->kubernetes = *std::move(state);
    return SetKubernetes(read, &*options->kubernetes);
  }
  if (!read.Has("--state")) return absl::OkStatus();
  const absl::StatusOr<std::string> directory = ParseDirectory(text);
  if (!directory.ok()) return Wrong("--state", text, directory.status());
  options->state_directory = *directory;
  return absl::OkStatus();
}

absl::Status SetHttpPlace(const TypedWords& read, const char* name,
                          std::optional<Endpoint>& place) {
  if (!read.Has(name)) return absl::OkStatus();
  const std::string text = read.Get(name, "");
  const absl::StatusOr<Endpoint> parsed = ParseMetricsPlace(text);
  if (!parsed.ok()) return Wrong(name, text, parsed.status());
  place = *parsed;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServiceOptions> ParseServiceOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, ReadWords(kServiceProgram, ServiceOptionRows(),
                                                            words, OptionPlace::kAnywhere));
  ServiceOptions options;
  if (read.Has("--help") || read.Has("--version")) {
    options.text_to_print = read.Has("--help") ? ServiceHelp() : Versions(read.Has("--verbose"));
    return options;
  }
  if (!read.rest.empty()) {
    return InvalidArgumentError(
        absl::StrCat("what is ", PrintableLine(read.rest[0]), "? see hlaunch-rendezvous --help"));
  }
  if (read.Has("--listen")) {
    const std::string text = read.Get("--listen", "");
    const absl::StatusOr<Endpoint> listen = ParseListenPlace(text, kDefaultRdzvPort);
    if (!listen.ok()) return Wrong("--listen", text, listen.status());
    options.listen = *listen;
  }
  HLAUNCH_RETURN_IF_ERROR(SetState(read, &options));
  HLAUNCH_RETURN_IF_ERROR(SetHttpPlace(read, "--metrics-port", options.metrics));
  HLAUNCH_RETURN_IF_ERROR(SetHttpPlace(read, "--status-page", options.status_page));
  options.token_file = read.Get("--token-file", "");
  options.certificates = {read.Get("--tls-cert", ""), read.Get("--tls-key", ""),
                          read.Get("--tls-ca", "")};
  options.tls = read.Get("--tls", "");
  const std::string max_jobs = read.Get("--max-jobs", absl::StrCat(options.max_jobs));
  if (!ParseInt(max_jobs, 1, kMostJobs, &options.max_jobs)) {
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
