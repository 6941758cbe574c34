// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/serve_commands.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/workers/process/descendants.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

std::vector<std::string> CommandLine() {
  return absl::StrSplit(ReadSmallFile("/proc/self/cmdline"), '\0', absl::SkipEmpty());
}

// The whole path of a file that the user named; empty if none was named.
std::string WholePath(const std::string& path) {
  std::error_code ignored;
  return path.empty() ? "" : std::filesystem::absolute(path, ignored).string();
}

std::string EndpointsOf(const JobSpec& spec) {
  std::string all = HostPort(spec.endpoint);
  for (const Endpoint& other : spec.other_endpoints) absl::StrAppend(&all, ",", HostPort(other));
  return all;
}

absl::StatusOr<JobMeeting> MeetingOfNode(const ServedNode& node) {
  if (!NeedsGrpc(node.spec)) {
    return absl::FailedPreconditionError("the job has one node, which meets nobody");
  }
  const std::string places = node.meeting_places();
  return MeetingOf(node.spec, places.empty() ? EndpointsOf(node.spec) : places);
}

}  // namespace

JobHere HereOfThisProcess(const JobSpec& spec, const Options& options) {
  JobHere here;
  std::error_code ignored;
  here.job_id = spec.job_id;
  here.min_nodes = spec.policy.min_nodes;
  here.max_nodes = spec.policy.max_nodes;
  here.host = HostName();
  here.pid = ::getpid();
  here.words = CommandLine();
  here.output = std::filesystem::read_symlink("/proc/self/fd/1", ignored).string();
  here.detached = options.detached_directory;
  return here;
}

JobMeeting MeetingOf(const JobSpec& spec, const std::string& endpoint) {
  return {endpoint,
          spec.token,
          spec.tls ? "on" : "off",
          WholePath(spec.certificates.certificate),
          WholePath(spec.certificates.key),
          WholePath(spec.certificates.authority)};
}

absl::Status EndThroughKeeper(const KeeperLink& keeper, int signal) {
  if (signal != SIGTERM && signal != SIGINT) {
    return absl::InvalidArgumentError("a job ends by SIGTERM or SIGINT");
  }
  const pid_t parent = ::getppid();
  pollfd dead = {keeper.fd(), POLLIN, 0};
  // While the keeper lives, it is this process' parent.
  if (::poll(&dead, 1, 0) != 0 || ::kill(parent, signal) != 0) {
    return absl::UnavailableError("the keeper of the job was killed; the job ends by itself");
  }
  ::kill(parent, SIGCONT);  // Ctrl-Z stops the keeper, which then hears nothing.
  return absl::OkStatus();
}

std::unique_ptr<JobServer> OpenJobServer(asio::io_context& loop, JobServer::Answers answers) {
  absl::StatusOr<std::unique_ptr<JobServer>> server = JobServer::Open(loop, std::move(answers));
  if (server.ok()) return *std::move(server);
  LogDebug(server.status().message());
  return nullptr;
}

std::unique_ptr<JobServer> ServeCommands(asio::io_context& loop, const ServedNode& node) {
  JobServer::Answers answers;
  const bool alone = !NeedsGrpc(node.spec);
  answers.here = [node, alone, began = WallMillis()] {
    JobHere here = HereOfThisProcess(node.spec, node.options);
    here.started_ms = began;
    here.decides = alone;
    if (node.logs.kept) here.log_directory = WholePath(node.logs.directory);
    return here;
  };
  answers.meeting = [node] { return MeetingOfNode(node); };
  answers.status = [node, alone] { return alone ? node.status() : std::nullopt; };
  answers.ranks = [node](const RankQuestion& question, JobServer::Answers::RanksDone done) {
    return node.ask(question, std::move(done));
  };
  answers.end = [node](int signal) { return EndThroughKeeper(node.keeper, signal); };
  return OpenJobServer(loop, std::move(answers));
}

}  // namespace hlaunch
