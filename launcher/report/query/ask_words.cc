// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/ask_words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status CheckOneJob(absl::string_view word, const TypedWords& read) {
  if (read.rest.size() <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("hlaunch ", word, " takes one job, and then comes ", PrintableLine(read.rest[1]),
                   "; to start a script of that name, write hlaunch ./", word));
}

absl::StatusOr<AskWords> ReadAskWords(absl::string_view word, const TypedWords& read) {
  HLAUNCH_RETURN_IF_ERROR(CheckOneJob(word, read));
  AskWords words;
  if (!read.rest.empty()) words.job_id = read.rest[0];
  if (!read.Has("--rdzv-endpoint")) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch ", word, " asks a rendezvous: add --rdzv-endpoint HOST[:PORT] (to ",
                     "start a script of that name, write hlaunch ./", word, ")"));
  }
  const std::string text = read.Get("--rdzv-endpoint", "");
  absl::StatusOr<std::vector<Endpoint>> all =
      ParseEndpoints(text, PortOfStep(words.job_id).value_or(kDefaultRdzvPort));
  if (all.ok() &&
      std::any_of(all->begin(), all->end(), [](const Endpoint& one) { return one.port == 0; })) {
    all = absl::InvalidArgumentError("port 0 is none");
  }
  if (!all.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rdzv-endpoint '", PrintableLine(text), "': ", all.status().message()));
  }
  words.endpoint = all->front();
  words.other_endpoints.assign(all->begin() + 1, all->end());
  words.token_file = read.Get("--token-file", "");
  words.certificates = {read.Get("--tls-cert", ""), read.Get("--tls-key", ""),
                        read.Get("--tls-ca", "")};
  words.tls = read.Get("--tls", "");
  words.json = read.Has("--json");
  return words;
}

}  // namespace hlaunch
