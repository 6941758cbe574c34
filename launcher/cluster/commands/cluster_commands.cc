// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/cluster_commands.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_failure.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/commands/cluster_text.h"
#include "launcher/cluster/commands/cluster_words.h"
#include "launcher/cluster/commands/decide_cluster.h"
#include "launcher/cluster/commands/drain_host.h"
#include "launcher/cluster/commands/job_commands.h"
#include "launcher/cluster/commands/named_job.h"
#include "launcher/cluster/commands/watch_cluster.h"
#include "launcher/command/own_jobs/own_job_commands.h"
#include "proto/base/clock.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

// Whether this host belongs to a cluster, or may: its daemon could not be asked.
bool HasCluster(const absl::StatusOr<HereAnswer>& here) {
  return !absl::IsNotFound(here.status()) && (!here.ok() || !here->head.empty());
}

// Tells all that is known of the job that `options` name: of the cluster, or of this host.
int TellJob(LocalClient& client, const std::string& program, const ClusterCommand& options,
            const BecomeAgentFn& become_agent) {
  if (const std::optional<uint64_t> number = JobOfCluster(options.job)) {
    const absl::StatusOr<JobView> job = AskJob(client, *number);
    if (!job.ok()) return FailToAskCluster(job.status());
    return PrintOfCluster(options.json ? ClusterJobJson(*job) : ClusterJobText(*job, WallMillis()));
  }
  return TellOwnJob(program, options.job, options.json, become_agent);
}

bool InCluster() {
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<HereAnswer> here = AskHere(client);
  return here.ok() && !here->head.empty();
}

}  // namespace

int ShowClusterJobs(int argc, char** argv, const BecomeAgentFn& become_agent) {
  const absl::StatusOr<ClusterCommand> options = ParsePsOptions(argc, argv);
  if (!options.ok()) return FailToAskCluster(options.status());
  if (options->text_to_print) return PrintOfCluster(*options->text_to_print);
  LocalClient client = ClientOfDaemon();
  if (!options->job.empty()) return TellJob(client, argv[0], *options, become_agent);
  const absl::StatusOr<HereAnswer> here = AskHere(client);
  if (!HasCluster(here)) return ListOwnJobs(options->json);
  if (here.ok() && !here->connected) {
    return FailToAskCluster(absl::UnavailableError(WithoutHead(*here)));
  }
  const absl::StatusOr<JobsAnswer> jobs =
      AskJobs(client, {.all = options->all, .ended = options->ended});
  if (!jobs.ok()) return FailToAskCluster(jobs.status());
  if (options->json) return PrintOfCluster(ClusterJobsJson(*jobs));
  const std::string own = OwnJobsBesideCluster();
  return PrintOfCluster(absl::StrCat(ClusterJobsText(*jobs, WallMillis()),
                                     own.empty() ? "" : "\nOf this host alone:\n", own));
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
  LocalClient client = ClientOfDaemon();
  const std::optional<uint64_t> number = JobOfCluster(options->job);
  if (options->job.empty() && HasCluster(AskHere(client))) {
    return WatchCluster(client.path(), options->all);
  }
  if (!number.has_value()) return WatchOwnJobs(argv[0], options->job, become_agent);
  return AskNodesOf({argv[0], "status", absl::StrCat(*number), "--watch"}, 2, *number,
                    become_agent);
}

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
  if (word == "status" && argc == 2 && InCluster()) {
    return ShowClusterJobs(argc, argv, become_agent);  // `ps` says as much.
  }
  const bool asks = word == "status" || word == "why" || word == "stacks";
  return asks ? RunAtMeeting(words, become_agent) : std::nullopt;
}

}  // namespace hlaunch
