// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/hold_part.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/hosts/start_message.h"
#include "launcher/remote/detached/hold_job.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/remote/ssh/take_start.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

HoldPlan PlanOf(const StartMessage& message) {
  HoldPlan plan;
  plan.env = ChildEnvironment(message);
  DetachedJob& job = plan.job;
  job.id = message.nonce;
  job.directory = Environment(plan.env).Get(kEnvDetached);
  job.started_ms = WallMillis();
  job.words = message.options;
  job.words.insert(job.words.end(), message.script.begin(), message.script.end());
  job.words.insert(job.words.begin(), "hlaunch");
  plan.argv = job.words;
  plan.rotation = {kHeldLogBytes, 1};
  return plan;
}

}  // namespace

int RunHold(int argc, char** argv) {
  if (argc != 3 || absl::string_view(argv[2]) != "--stdin") {
    LogError("`hlaunch hold --stdin` is for hlaunchd's own use");
    return kExitUsage;
  }
  const absl::StatusOr<StartMessage> message = ReadStart();
  if (!message.ok()) {
    LogError(message.status().message());
    return kExitUsage;
  }
  ::prctl(PR_SET_DUMPABLE, 0);  // This process holds the job's secret.
  if (message->umask >= 0) ::umask(static_cast<mode_t>(message->umask));
  SetLimits(*message);
  const std::string& directory = message->directory;
  if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
    LogError(absl::StrCat("no working directory ", directory, " there: ", std::strerror(errno)));
    return kExitNotStarted;
  }
  return HoldJob(PlanOf(*message));
}

}  // namespace hlaunch
