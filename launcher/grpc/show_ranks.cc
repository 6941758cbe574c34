// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/show_ranks.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/ask/ask_options.h"
#include "launcher/ask/stacks_text.h"
#include "launcher/ask/who_answered.h"
#include "launcher/ask/why_text.h"
#include "launcher/detached/known_jobs.h"
#include "launcher/detached/meeting_words.h"
#include "launcher/grpc/ask.h"
#include "launcher/words/environment.h"
#include "launcher/words/exit_codes.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/ask/rank_client.h"

namespace hlaunch {
namespace {

std::string WhyAnswer(const AskOptions& options, JobAnswer answer) {
  const std::vector<RankPicture> ranks = TakePictures(answer);
  return options.words.json ? WhyJson(options.words.job_id, options.question, answer, ranks)
                            : WhyText(options.words.job_id, options.question, answer, ranks);
}

std::string StacksAnswer(const AskOptions& options, JobAnswer answer) {
  const std::vector<SharedStack> stacks = TakeStacks(answer);
  return options.words.json ? StackListJson(options.words.job_id, answer, stacks)
                            : StackListText(options.words.job_id, answer, stacks);
}

using ParseFn = absl::StatusOr<AskOptions> (*)(int argc, const char* const* argv);

absl::StatusOr<AskOptions> Parse(int argc, char** argv, ParseFn parse) {
  const std::string jobs = JobsDirectory(Environment::OfThisProcess());
  const std::vector<std::string> words =
      WithMeeting(std::vector<std::string>(argv, argv + argc), KnownJobs(jobs));
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse(static_cast<int>(pointers.size()), pointers.data());
}

int ShowRanks(const absl::StatusOr<AskOptions>& options,
              std::string (*text)(const AskOptions&, JobAnswer)) {
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  const absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(options->words);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  const absl::StatusOr<JobAnswer> answer =
      AskRanks(*endpoint, options->words.job_id, options->question);
  if (!answer.ok()) {
    return FailToAsk(answer.status(), ExitCodeOf(FailedStep::kAsk, answer.status()));
  }
  const absl::Status known = CheckRanks(options->question, *answer);
  if (!known.ok()) return FailToAsk(known, kExitUsage);
  return PrintAnswer(text(*options, *answer));
}

}  // namespace

int ShowWhy(int argc, char** argv) {
  return ShowRanks(Parse(argc, argv, ParseWhyOptions), WhyAnswer);
}

int ShowStacks(int argc, char** argv) {
  return ShowRanks(Parse(argc, argv, ParseStacksOptions), StacksAnswer);
}

}  // namespace hlaunch
