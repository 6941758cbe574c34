// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/job_request.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "agent/machine/devices/assign_devices.h"
#include "agent/machine/devices/device.h"
#include "launcher/cli/hosts/exported.h"
#include "launcher/remote/ssh/job_words.h"
#include "launcher/remote/ssh/make_plan.h"
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/utf8_prefix.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

// Options that are for this command alone, that fields of the request express, or that the head
// decides.
constexpr const char* kStayHere[] = {
    "--nnodes",     "--nproc-per-node", "--spares",      "--nodes",        "--constraint",
    "--exclusive",  "--devices",        "--cluster",     "--cluster-file", "--config",
    "--detach",     "--export",         "--export-var",  "--stdin",        "--token-file",
    "--standalone", "--rdzv-id",        "--rdzv-backend"};

bool StaysHere(const OptionRow& row) {
  return std::any_of(std::begin(kStayHere), std::end(kStayHere),
                     [&row](absl::string_view name) { return name == row.name; });
}

std::vector<std::string> WordsOfPart(const Options& options) {
  std::vector<std::string> words;
  for (const WrittenOption& option : WrittenOptions(options)) {
    if (option.row != nullptr && StaysHere(*option.row)) continue;
    words.insert(words.end(), option.words.begin(), option.words.end());
  }
  return words;
}

absl::Status CheckOptions(const Options& options) {
  const auto refuse = [](absl::string_view what) {
    return InvalidArgumentError(absl::StrCat("a job of the cluster ", what));
  };
  if (options.worker.stdin_to.value_or(StdinTo::kNobody) != StdinTo::kNobody) {
    return refuse("reads no standard input: leave --stdin out, or add --cluster none");
  }
  if (options.devices.ids.has_value()) {
    return refuse(
        "gets the devices that are free on its hosts: leave their numbers out of "
        "--devices, or add --cluster none");
  }
  if (options.devices.starts_others) {
    return refuse(
        "holds a device for each of its workers, and with --per-node it has one alone: "
        "give --nproc-per-node, or add --cluster none");
  }
  if (options.meeting.tls == "off") {
    return refuse("encrypts what its nodes say: leave --tls off out, or add --cluster none");
  }
  return absl::OkStatus();
}

// Sets how many workers a node has, and on which kind of device.
absl::Status SetWorkers(const Options& options, JobRequest& request) {
  if (options.devices.none) request.devices = "none";
  if (options.nproc.has_value()) {
    request.workers = *options.nproc;
    return absl::OkStatus();
  }
  request.workers = 0;
  const std::vector<DeviceKind> kinds = KindsOfWord(options.nproc_word);
  if (!kinds.empty() && !options.devices.none) {
    request.devices = absl::StrJoin(kinds, ",", [](std::string* out, DeviceKind kind) {
      absl::StrAppend(out, KindName(kind));
    });
  }
  if ((!kinds.empty() || options.nproc_word == "auto") && !options.devices.none) {
    return absl::OkStatus();
  }
  return InvalidArgumentError(absl::StrCat(
      "--nproc-per-node ", PrintableLine(options.nproc_word),
      ": a job of the cluster does not know its hosts yet, and needs a number, or devices such as "
      "hpu or gpu"));
}

// Returns the name that people see for the job.
std::string NameOf(const Options& options) {
  constexpr size_t kLongest = 120;
  const std::string& script = options.script.command[0];
  const bool is_path = !options.script.module;
  const std::string name = PrintableLine(!options.meeting.job_id.empty() ? options.meeting.job_id
                                         : is_path ? script.substr(script.rfind('/') + 1)
                                                   : script);
  return std::string(Utf8Prefix(name, kLongest));
}

// Returns true if `text` reaches other hosts unchanged, as UTF-8 does.
bool IsText(const std::string& text) {
  const auto dumped =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(dumped) == text && text.find('\0') == text.npos;
}

absl::Status CheckTexts(const JobRequest& request) {
  for (const auto* texts : {&request.options, &request.script, &request.environment}) {
    for (const std::string& text : *texts) {
      if (IsText(text)) continue;
      return InvalidArgumentError(
          absl::StrCat("a job of the cluster takes words and variables in UTF-8 alone, and this is "
                       "none: ",
                       PrintableLine(text.substr(0, text.find('=')))));
    }
  }
  return absl::OkStatus();
}

absl::Status SetHosts(const PlacingWish& wish, JobRequest& request) {
  request.hosts = wish.hosts;
  request.labels = wish.labels;
  request.exclusive = wish.exclusive;
  for (const std::string& host : wish.hosts) {
    if (IsClusterHostName(host)) continue;
    return InvalidArgumentError(absl::StrCat("--nodes '", PrintableLine(host),
                                             "': that is no name of a host of a cluster; "
                                             "hlaunch nodes shows them"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TerminalState> StateOfThisProcess() {
  std::error_code error;
  TerminalState state;
  state.directory = std::filesystem::current_path(error).string();
  if (error) {
    return InvalidArgumentError(
        absl::StrCat("the working directory cannot be read: ", error.message()));
  }
  state.umask = UmaskOfThisProcess();
  state.limits = LimitsOfThisProcess();
  return state;
}

absl::StatusOr<JobRequest> RequestOf(const Options& options, const Environment& environment,
                                     const TerminalState& state) {
  HLAUNCH_RETURN_IF_ERROR(CheckOptions(options));
  JobRequest request;
  request.name = NameOf(options);
  request.min_nodes = options.policy.min_nodes;
  request.max_nodes = options.policy.max_nodes;
  request.spares = options.policy.spares;
  if (!options.placing.hosts.empty() && !SaysOption(options, "--nnodes")) {
    const int named = static_cast<int>(options.placing.hosts.size());
    request.min_nodes = request.max_nodes = std::max(1, named - request.spares);
  }
  HLAUNCH_RETURN_IF_ERROR(SetWorkers(options, request));
  HLAUNCH_RETURN_IF_ERROR(SetHosts(options.placing, request));
  request.options = WordsOfPart(options);
  request.script = options.script.command;
  HLAUNCH_ASSIGN_OR_RETURN(request.environment, ExportedVariables(options.hosts, environment));
  request.limits = state.limits;
  request.directory = state.directory;
  request.umask = state.umask;
  request.grace_s = static_cast<int>(
      std::chrono::duration_cast<std::chrono::seconds>(options.worker.stop_grace).count());
  HLAUNCH_RETURN_IF_ERROR(CheckTexts(request));
  return request;
}

}  // namespace hlaunch
