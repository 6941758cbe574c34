// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/ask/ask_words.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/finders.h"
#include "launcher/words/printable.h"

namespace hlaunch {

absl::StatusOr<AskWords> ReadAskWords(absl::string_view word, const TypedWords& read) {
  if (read.rest.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hlaunch ", word, " takes one job, and then comes ", PrintableLine(read.rest[1]),
        "; to start a script of that name, write hlaunch ./", word));
  }
  AskWords words;
  if (!read.rest.empty()) words.job_id = read.rest[0];
  if (!read.Has("--rdzv-endpoint")) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch ", word, " asks a rendezvous: add --rdzv-endpoint HOST[:PORT] (to ",
                     "start a script of that name, write hlaunch ./", word, ")"));
  }
  const std::string text = read.Get("--rdzv-endpoint", "");
  absl::StatusOr<Endpoint> endpoint =
      ParseEndpoint(text, PortOfStep(words.job_id).value_or(kDefaultRdzvPort));
  if (endpoint.ok() && endpoint->port == 0) {
    endpoint = absl::InvalidArgumentError("port 0 is none");
  }
  if (!endpoint.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rdzv-endpoint '", PrintableLine(text), "': ", endpoint.status().message()));
  }
  words.endpoint = *std::move(endpoint);
  words.token_file = read.Get("--token-file", "");
  words.certificates = {read.Get("--tls-cert", ""), read.Get("--tls-key", ""),
                        read.Get("--tls-ca", "")};
  words.tls = read.Get("--tls", "");
  words.json = read.Has("--json");
  return words;
}

}  // namespace hlaunch
