// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/drain_host.h"

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/cluster/client/cluster_failure.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/commands/named_job.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::StatusOr<std::optional<DrainQuestion>> DrainOfHost(const std::vector<std::string>& words) {
  constexpr int kMostSeconds = 7 * 24 * 3600;
  const bool undrain = words[1] == "undrain";
  const absl::StatusOr<TypedWords> read = ReadWords(
      absl::StrCat("hlaunch ", words[1]), undrain ? UndrainOptionRows() : DrainOptionRows(),
      {words.begin() + 2, words.end()}, OptionPlace::kAnywhere);
  if (!read.ok() || read->rest.size() != 1) return std::nullopt;
  for (const char* name : {"--help", "--rdzv-endpoint"}) {
    if (read->Has(name)) return std::nullopt;
  }
  DrainQuestion question;
  question.host = read->rest[0];
  if (!IsClusterHostName(question.host)) return std::nullopt;
  if (undrain) return question;
  question.reason = read->Get("--reason", "");
  if (question.reason.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch drain ", question.host,
                     ": add --reason TEXT, which is shown to everybody who waits for that host"));
  }
  if (read->Has("--within")) {
    return absl::InvalidArgumentError(
        "--within is of a node of a job; of a host of the cluster, --deadline S asks its jobs to "
        "move");
  }
  HLAUNCH_RETURN_IF_ERROR(read->ReadSeconds("--deadline", 0, kMostSeconds, &question.evict_s));
  return question;
}

std::optional<int> DrainHost(const std::vector<std::string>& words) {
  const absl::StatusOr<std::optional<DrainQuestion>> question = DrainOfHost(words);
  if (question.ok() && !question->has_value()) return std::nullopt;
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<HereAnswer> here = AskHere(client);
  if (absl::IsNotFound(here.status())) return std::nullopt;  // The words mean a node of a job.
  if (!here.ok()) return FailToAskCluster(here.status());
  if (here->head.empty()) return std::nullopt;
  if (!question.ok()) return FailToAskCluster(question.status());
  const absl::Status done = AskDrain(client, words[1].c_str(), **question);
  if (!done.ok()) return FailToAskCluster(done);
  const std::string host = PrintableLine((*question)->host);
  if (words[1] == "undrain") return PrintOfCluster(absl::StrCat("host ", host, " takes jobs\n"));
  return PrintOfCluster(absl::StrCat(
      "host ", host, " takes no new jobs; ",
      (*question)->evict_s < 0
          ? std::string("those that are there go on")
          : absl::StrCat("jobs of several nodes that are there are asked to move, and what still "
                         "runs there after ",
                         (*question)->evict_s, " s is stopped"),
      "; hlaunch undrain ", host, " takes it back\n"));
}

}  // namespace hlaunch
