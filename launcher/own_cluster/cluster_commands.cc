// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/own_cluster/cluster_commands.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster_client/cluster_failure.h"
#include "launcher/cluster_client/cluster_questions.h"
#include "launcher/cluster_client/local_client.h"
#include "launcher/detached/known_jobs.h"
#include "launcher/own_cluster/cluster_text.h"
#include "launcher/own_cluster/cluster_words.h"
#include "launcher/own_cluster/decide_cluster.h"
#include "launcher/own_cluster/drain_host.h"
#include "launcher/own_cluster/job_commands.h"
#include "launcher/own_cluster/named_job.h"
#include "launcher/own_cluster/watch_cluster.h"
#include "proto/base/clock.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {

int ShowClusterJobs(int argc, char** argv) {
  const absl::StatusOr<ClusterCommand> options = ParsePsOptions(argc, argv);
  if (!options.ok()) return FailToAskCluster(options.status());
  if (options->text_to_print) return PrintOfCluster(*options->text_to_print);
  LocalClient client = ClientOfDaemon();
  if (options->job.has_value()) {
    const absl::StatusOr<JobView> job = AskJob(client, *options->job);
    if (!job.ok()) return FailToAskCluster(job.status());
    return PrintOfCluster(options->json ? ClusterJobJson(*job)
                                        : ClusterJobText(*job, WallMillis()));
  }
  const absl::StatusOr<HereAnswer> here = AskHere(client);
  if (absl::IsNotFound(here.status()) || (here.ok() && here->head.empty())) {
    const std::vector<DetachedJob> kept = JobsKeptHere();
    return PrintOfCluster(options->json ? JobsJson(kept) : JobsText(kept));
  }
  if (here.ok() && !here->connected) {
    return FailToAskCluster(absl::UnavailableError(WithoutHead(*here)));
  }
  const absl::StatusOr<JobsAnswer> jobs =
      AskJobs(client, {.all = options->all, .ended = options->ended});
  if (!jobs.ok()) return FailToAskCluster(jobs.status());
  return PrintOfCluster(options->json ? ClusterJobsJson(*jobs)
                                      : ClusterJobsText(*jobs, WallMillis()));
}

int ShowClusterHosts(int argc, char** argv) {
  const absl::StatusOr<ClusterCommand> options = ParseNodesOptions(argc, argv);
  if (!options.ok()) return FailToAskCluster(options.status());
  if (options->text_to_print) return PrintOfCluster(*options->text_to_print);
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<HostsAnswer> hosts = AskNodes(client);
  if (!hosts.ok()) return FailToAskCluster(hosts.status());
  return PrintOfCluster(options->json ? HostsJson(*hosts) : HostsText(*hosts, WallMillis()));
}

int ShowTop(int argc, char** argv, const BecomeAgentFn& become_agent) {
  const absl::StatusOr<ClusterCommand> options = ParseTopOptions(argc, argv);
  if (!options.ok()) return FailToAskCluster(options.status());
  if (options->text_to_print) return PrintOfCluster(*options->text_to_print);
  const std::string socket = ClientOfDaemon().path();
  if (!options->job.has_value()) return WatchCluster(socket, options->all);
  return AskNodesOf({argv[0], "status", absl::StrCat(*options->job), "--watch"}, 2, *options->job,
                    become_agent);
}

namespace {

bool InCluster() {
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<HereAnswer> here = AskHere(client);
  return here.ok() && !here->head.empty();
}

// About all jobs this says as much as `ps` does. Below them it lists the jobs that run on this host
// alone.
int ShowAllJobs(int argc, char** argv) {
  const int shown = ShowClusterJobs(argc, argv);
  const std::vector<DetachedJob> kept = JobsKeptHere();
  if (shown != kExitOk || kept.empty()) return shown;
  return PrintOfCluster(absl::StrCat("\nDetached, of this host alone:\n", JobsText(kept)));
}

}  // namespace

std::optional<int> RunForCluster(absl::string_view word, int argc, char** argv,
                                 const BecomeAgentFn& become_agent) {
  if (word == "attach" || word == "logs" || word == "stop" || word == "kill") {
    return RunForJobOfCluster(word, argc, argv);
  }
  const std::vector<std::string> words(argv, argv + argc);
  if (word == "drain" || word == "undrain") {
    if (const std::optional<int> done = DrainHost(words)) return done;
    const bool has_job =
        argc > 3 && !absl::StartsWith(words[2], "-") && !absl::StartsWith(words[3], "-");
    return has_job ? RunAtMeeting(words, become_agent) : std::nullopt;
  }
  if (word == "status" && argc == 2 && InCluster()) return ShowAllJobs(argc, argv);
  const bool asks = word == "status" || word == "why" || word == "stacks";
  return asks ? RunAtMeeting(words, become_agent) : std::nullopt;
}

}  // namespace hlaunch
