// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/status_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/printable.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr char kStatusCommand[] = "hlaunch status";

std::string StatusHelp() {
  return absl::StrCat(
      "usage: hlaunch status [JOB] --rdzv-endpoint HOST[:PORT] [--watch|--json] "
      "[--token-file FILE]\n"
      "       hlaunch status JOB --rdzv-endpoint HOST[:PORT] --html FILE\n"
      "       hlaunch status [JOB] [--watch|--json|--html FILE]\n\n"
      "Says where a job stands and why: who is awaited, which round runs, how it ended. Without\n"
      "JOB (its --rdzv-id) all jobs of that rendezvous, a line each. Without --rdzv-endpoint your "
      "own\n"
      "jobs on this host are meant: the only one that runs, or a list of all, with detached ones\n"
      "that have ended. A script named `status` is started as `hlaunch ./status`.\n\n"
      "--watch also shows the rounds so far, the nodes and the last lines of a rank that failed,\n"
      "until the job is over or you press q.\n\n",
      DescribeOptions(StatusOptionRows()), "\nExit code: 0 found; 2 wrong usage; ",
      kExitBadEndpoint, " no rendezvous answers there; ", kExitRefused,
      " there is no such\njob, or the token is not right.\n");
}

const char* StateName(JobState state) {
  switch (state) {
    case JobState::kForming:
      return "forming";
    case JobState::kPreflight:
      return "preflight";
    case JobState::kRunning:
      return "running";
    case JobState::kStopping:
      return "stopping";
    case JobState::kOver:
      return "over";
  }
  return "";
}

std::string StateText(const JobStatus& job) {
  return job.state == JobState::kOver ? absl::StrCat("over, exit code ", job.exit_code)
                                      : StateName(job.state);
}

// "2 of 4", "3 of 2:4".
std::string NodesText(const JobStatus& job) {
  return absl::StrCat(job.total_nodes, " of ",
                      job.min_nodes == job.max_nodes ? "" : absl::StrCat(job.min_nodes, ":"),
                      job.max_nodes);
}

std::string RestartsText(const JobStatus& job) {
  const int more = job.uncounted;
  return absl::StrCat(
      job.restarts - more, " of ", job.max_restarts,
      more == 0 ? ""
                : absl::StrCat(", and ", more, " that ", more == 1 ? "does" : "do", " not count"));
}

nlohmann::ordered_json ToJson(const NodeStatus& node) {
  nlohmann::ordered_json json = {{"host", node.host}, {"address", node.address}, {"pid", node.pid}};
  json["node_rank"] = nullptr;
  if (node.node_rank >= 0) json["node_rank"] = node.node_rank;
  json["nproc"] = node.nproc;
  json["state"] = node.state;
  json["standing"] = kStandingWords[static_cast<size_t>(node.standing)];
  json["first_rank"] = nullptr;
  if (node.node_rank >= 0) json["first_rank"] = node.first_rank;
  json["drain_reason"] = node.drain_reason;
  return json;
}

// Times are in milliseconds since 1970. Null: the event has not happened, or its time is unknown.
nlohmann::ordered_json TimeJson(int64_t ms) {
  return ms == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(ms);
}

nlohmann::ordered_json ToJson(const RoundStatus& round) {
  return {{"round", round.round},
          {"began_ms", TimeJson(round.began_ms)},
          {"ran_ms", TimeJson(round.ran_ms)},
          {"stopping_ms", TimeJson(round.stopping_ms)},
          {"stopped_ms", TimeJson(round.stopped_ms)},
          {"nodes", round.nodes},
          {"world_size", round.world_size},
          {"restarts", round.restarts},
          {"reason", round.reason}};
}

nlohmann::ordered_json ToJson(const JobStatus& job, bool with_nodes) {
  nlohmann::ordered_json json = {
      {"job_id", job.job_id},           {"state", StateName(job.state)},
      {"explanation", job.explanation}, {"round", job.round},
      {"min_nodes", job.min_nodes},     {"max_nodes", job.max_nodes},
      {"restarts", job.restarts},       {"max_restarts", job.max_restarts},
      {"uncounted", job.uncounted}};
  json["exit_code"] = nullptr;
  if (job.state == JobState::kOver) json["exit_code"] = job.exit_code;
  json["total_nodes"] = job.total_nodes;
  if (!with_nodes) return json;
  json["world_size"] = job.world_size;
  json["told_ms"] = TimeJson(job.told_ms);
  json["began_ms"] = TimeJson(job.began_ms);
  json["ran_for_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(job.ran_for).count();
  json["notice"] = job.notice;
  json["excluded"] = job.excluded;
  json["rounds"] = nlohmann::ordered_json::array();
  for (const RoundStatus& round : job.rounds) json["rounds"].push_back(ToJson(round));
  json["nodes"] = nlohmann::ordered_json::array();
  for (const NodeStatus& node : job.nodes) json["nodes"].push_back(ToJson(node));
  return json;
}

// Returns how many ways to show the status are given.
size_t Looks(const TypedWords& read) {
  size_t looks = 0;
  for (const char* name : {"--watch", "--html", "--json"}) looks += read.Has(name) ? 1 : 0;
  return looks;
}

// Reads how to show the status.
absl::Status ReadLook(const TypedWords& read, StatusOptions& options) {
  options.watch = read.Has("--watch");
  options.html_file = read.Get("--html", "");
  if (Looks(read) > 1) {
    return absl::InvalidArgumentError(
        "--watch, --html and --json are three ways to show it; give one");
  }
  if (read.Has("--html") && read.rest.empty()) {
    return absl::InvalidArgumentError("--html shows one job: name it, as in hlaunch status JOB");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StatusOptions> ParseStatusOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read, ReadWords(kStatusCommand, StatusOptionRows(),
                                                            words, OptionPlace::kAnywhere));
  StatusOptions options;
  if (read.Has("--help")) {
    options.text_to_print = StatusHelp();
    return options;
  }
  HLAUNCH_RETURN_IF_ERROR(ReadLook(read, options));
  options.detached = read.given.size() == Looks(read);
  if (options.detached && read.rest.size() <= 1) {
    if (!read.rest.empty()) options.job_id = read.rest[0];
    options.json = read.Has("--json");
    return options;
  }
  HLAUNCH_ASSIGN_OR_RETURN(static_cast<AskWords&>(options), ReadAskWords("status", read));
  return options;
}

std::string JobText(const JobStatus& job) {
  std::string text =
      absl::StrCat("job       ", PrintableLine(job.job_id), "\nstate     ", StateText(job),
                   "\nwhy       ", PrintableLine(job.explanation), "\nround     ", job.round,
                   "\nnodes     ", NodesText(job), "\nrestarts  ", RestartsText(job), "\n");
  if (job.nodes.empty()) return text;
  std::vector<std::vector<std::string>> rows = {
      {"RANK", "HOST", "ADDRESS", "PID", "WORKERS", "STATE"}};
  for (const NodeStatus& node : job.nodes) {
    rows.push_back({node.node_rank < 0 ? "-" : absl::StrCat(node.node_rank), node.host,
                    node.address, absl::StrCat(node.pid), absl::StrCat(node.nproc), node.state});
  }
  absl::StrAppend(&text, "\n", TextTable(rows));
  const int more = job.total_nodes - static_cast<int>(job.nodes.size());
  if (more > 0) absl::StrAppend(&text, "and ", more, " more\n");
  return text;
}

std::string JobListText(const std::vector<JobStatus>& jobs, int total, const std::string& leader) {
  const std::string head = leader.empty() ? "" : absl::StrCat(PrintableLine(leader), " leads\n");
  if (jobs.empty()) return absl::StrCat(head, "no jobs\n");
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "ROUND", "NODES", "RESTARTS", "WHY"}};
  for (const JobStatus& job : jobs) {
    rows.push_back({job.job_id, StateText(job), absl::StrCat(job.round), NodesText(job),
                    RestartsText(job), job.explanation});
  }
  const int more = total - static_cast<int>(jobs.size());
  return absl::StrCat(head, TextTable(rows), more > 0 ? absl::StrCat("and ", more, " more\n") : "");
}

std::string JobJson(const JobStatus& job) { return JsonText(ToJson(job, /*with_nodes=*/true)); }

std::string JobListJson(const std::vector<JobStatus>& jobs, int total, const std::string& leader) {
  nlohmann::ordered_json json = {{"total_jobs", total}};
  if (!leader.empty()) json["leader"] = leader;
  json["jobs"] = nlohmann::ordered_json::array();
  for (const JobStatus& job : jobs) json["jobs"].push_back(ToJson(job, /*with_nodes=*/false));
  return JsonText(json);
}

}  // namespace hlaunch
