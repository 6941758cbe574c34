// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/show_status.h"

#include "absl/status/statusor.h"
#include "launcher/grpc/ask.h"
#include "launcher/report/status_text.h"
#include "launcher/words/exit_codes.h"
#include "proto/base/clock.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/ask/status_client.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

int ShowStatus(int argc, char** argv) {
  const absl::StatusOr<StatusOptions> options = ParseStatusOptions(argc, argv);
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  const absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(*options);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  const absl::StatusOr<JobList> list =
      FetchStatus(*endpoint, options->job_id, MonotonicClock().Now() + kPatience);
  if (!list.ok()) return FailToAsk(list.status(), ExitCodeOf(FailedStep::kAsk, list.status()));
  if (options->job_id.empty()) {
    return PrintAnswer(options->json ? JobListJson(list->jobs, list->total, list->leader)
                                     : JobListText(list->jobs, list->total, list->leader));
  }
  if (list->jobs.size() != 1) {
    return FailToAsk(absl::InternalError("an answer without the job"), kExitInternal);
  }
  return PrintAnswer(options->json ? JobJson(list->jobs[0]) : JobText(list->jobs[0]));
}

}  // namespace hlaunch
