// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

absl::Status SetProxy(bool wanted, Options& options) {
  if (options.store.proxy.value_or(wanted) != wanted) {
    return InvalidArgumentError("the other one of --store-proxy and --no-store-proxy is given too");
  }
  options.store.proxy = wanted;
  return absl::OkStatus();
}

absl::Status SetSize(string_view text, int64_t max, size_t* out) {
  HLAUNCH_ASSIGN_OR_RETURN(*out, ParseSize(text, 1, max));
  return absl::OkStatus();
}

const OptionRow kStoreRows[] = {
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

}  // namespace

absl::Span<const OptionRow> StoreOptions() { return kStoreRows; }

}  // namespace hlaunch
