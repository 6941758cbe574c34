// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/show_ranks.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/grpc/ask.h"
#include "launcher/remote/detached/known_jobs.h"
#include "launcher/remote/detached/meeting_words.h"
#include "launcher/report/query/ask_options.h"
#include "launcher/report/query/rank_answer_text.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/text/environment.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/rpc/query/rank_client.h"

namespace hlaunch {
namespace {

using ParseFn = absl::StatusOr<AskOptions> (*)(int argc, const char* const* argv);

absl::StatusOr<AskOptions> Parse(int argc, char** argv, ParseFn parse) {
  const std::string jobs = JobsDirectory(Environment::OfThisProcess());
  const std::vector<std::string> words =
      WithMeeting(std::vector<std::string>(argv, argv + argc), KnownJobs(jobs));
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse(static_cast<int>(pointers.size()), pointers.data());
}

int ShowRanks(const absl::StatusOr<AskOptions>& options) {
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  if (options->here) {
    return FailToAsk(NoJobToAsk(options->words.job_id), kExitRefused);
  }
  const absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(options->words);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  return TellRanks(*options, AskRanks(*endpoint, options->words.job_id, options->question));
}

}  // namespace

int ShowWhy(int argc, char** argv) { return ShowRanks(Parse(argc, argv, ParseWhyOptions)); }

int ShowStacks(int argc, char** argv) { return ShowRanks(Parse(argc, argv, ParseStacksOptions)); }

}  // namespace hlaunch
