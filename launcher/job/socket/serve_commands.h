// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/output/log_directory.h"
#include "agent/workers/worker/keeper_link.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/socket/job_server.h"
#include "launcher/job/spec/job_spec.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What a node's socket tells of. A value; all that it names outlives the server.
struct ServedNode {
  const JobSpec& spec;
  const Options& options;
  const JobLogs& logs;
  const KeeperLink& keeper;
  // As those of NodeLink.
  std::function<std::string()> meeting_places;
  std::function<std::optional<JobStatus>()> status;
  std::function<absl::Status(const RankQuestion&, JobServer::Answers::RanksDone)> ask;
};

// Opens the socket at which this user's commands find this node. Null if it cannot be opened: the
// job goes on without. Costs a few system calls.
std::unique_ptr<JobServer> ServeCommands(asio::io_context& loop, const ServedNode& node);

// What every process that has a job's socket tells of itself. Reads /proc.
JobHere HereOfThisProcess(const JobSpec& spec, const Options& options);

// Where the nodes of the job meet: at `endpoint`, HOST:PORT, several with commas between them.
JobMeeting MeetingOf(const JobSpec& spec, const std::string& endpoint);

// Ends the job as `signal` from a person does: tells the keeper, this process' parent, and
// continues it, since Ctrl-Z may have stopped it.
//
// Errors:
//   InvalidArgument - it is neither SIGTERM nor SIGINT.
//   Unavailable - the keeper is dead, and the job ends for that.
absl::Status EndThroughKeeper(const KeeperLink& keeper, int signal);

// Opens the socket, or logs why not, at debug level, and returns null.
std::unique_ptr<JobServer> OpenJobServer(asio::io_context& loop, JobServer::Answers answers);

}  // namespace hlaunch
