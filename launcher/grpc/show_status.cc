// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/show_status.h"

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/job/credentials.h"
#include "launcher/report/status_text.h"
#include "launcher/words/environment.h"
#include "launcher/words/exit_codes.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/terminal_text.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/ask/status_client.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

int Fail(const absl::Status& status, int code) {
  LogError(status.message());
  return code;
}

int Print(const std::string& text) {
  std::fputs(TerminalLines(text).c_str(), stdout);
  return std::fflush(stdout) == 0 ? kExitOk : kExitInternal;
}

}  // namespace

int ShowStatus(int argc, char** argv) {
  const absl::StatusOr<StatusOptions> options = ParseStatusOptions(argc, argv);
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  const absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(*options);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  const absl::StatusOr<JobList> list =
      FetchStatus({options->endpoint.host, options->endpoint.port, *trust}, options->job_id,
                  MonotonicClock().Now() + kPatience);
  if (!list.ok()) return Fail(list.status(), ExitCodeOf(FailedStep::kAsk, list.status()));
  if (options->job_id.empty()) {
    return Print(options->json ? JobListJson(list->jobs, list->total)
                               : JobListText(list->jobs, list->total));
  }
  if (list->jobs.size() != 1) {
    return Fail(absl::InternalError("an answer without the job"), kExitInternal);
  }
  return Print(options->json ? JobJson(list->jobs[0]) : JobText(list->jobs[0]));
}

}  // namespace hlaunch
