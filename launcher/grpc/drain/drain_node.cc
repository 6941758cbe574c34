// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/drain/drain_node.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/grpc/ask.h"
#include "launcher/remote/detached/known_jobs.h"
#include "launcher/remote/detached/meeting_words.h"
#include "launcher/report/query/drain_options.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/rpc/query/drain_client.h"
#include "rendezvous/rpc/query/status_client.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

absl::StatusOr<DrainOptions> Parse(int argc, char** argv) {
  const std::string jobs = JobsDirectory(Environment::OfThisProcess());
  const std::vector<std::string> words =
      WithMeetingOfNode(std::vector<std::string>(argv, argv + argc), KnownJobs(jobs));
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return ParseDrainOptions(static_cast<int>(pointers.size()), pointers.data());
}

// Returns the job `named`, or if that is empty, the only job that the rendezvous has.
absl::StatusOr<std::string> FindJob(const RendezvousEndpoint& endpoint, const std::string& named) {
  if (!named.empty()) return named;
  HLAUNCH_ASSIGN_OR_RETURN(const JobList list,
                           FetchStatus(endpoint, "", MonotonicClock().Now() + kPatience));
  if (list.total == 1 && list.jobs.size() == 1) return list.jobs[0].job_id;
  return absl::InvalidArgumentError(absl::StrCat("the rendezvous has ", list.total,
                                                 " jobs: name one, as hlaunch drain JOB NODE"));
}

absl::StatusOr<std::string> Drain(const RendezvousEndpoint& endpoint, const DrainOptions& options) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string job, FindJob(endpoint, options.words.job_id));
  return AskToDrain(endpoint, job, options.request);
}

}  // namespace

int DrainNode(int argc, char** argv) {
  const absl::StatusOr<DrainOptions> options = Parse(argc, argv);
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  const absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(options->words);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  const absl::StatusOr<std::string> follows = Drain(*endpoint, *options);
  if (absl::IsInvalidArgument(follows.status())) return FailToAsk(follows.status(), kExitUsage);
  // The rendezvous refused: the job cannot go on without that node.
  if (absl::IsFailedPrecondition(follows.status())) {
    return FailToAsk(follows.status(), kExitRefused);
  }
  if (!follows.ok()) {
    return FailToAsk(follows.status(), ExitCodeOf(FailedStep::kAsk, follows.status()));
  }
  return PrintAnswer(absl::StrCat(*follows, "\n"));
}

int UndrainNode(int argc, char** argv) { return DrainNode(argc, argv); }

}  // namespace hlaunch
