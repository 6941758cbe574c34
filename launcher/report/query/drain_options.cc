// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/drain_options.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

constexpr int kMostSeconds = 7 * 24 * 3600;

std::string DrainExitCodes() {
  return absl::StrCat(
      "\nExit code: 0 done; 2 wrong usage; ", kExitBadEndpoint, " no rendezvous answers there; ",
      kExitRefused,
      " there is no such job or\nnode, the job cannot be without it, or the token is "
      "not right.\n");
}

std::string DrainHelp() {
  return absl::StrCat(
      "usage: hlaunch drain [JOB] NODE --rdzv-endpoint HOST[:PORT] [--reason TEXT] [--within S]\n\n"
      "Takes NODE, a host name, a node id or a node rank of the latest round, out of JOB (its\n"
      "--rdzv-id). A spare takes its place, or the job goes on with fewer nodes if its --nnodes\n"
      "allows it; else the round goes on until another node joins. No restart is charged. The\n"
      "node's hlaunch then ends with exit code 0. Of a job that you started here with --detach, "
      "no\n"
      "endpoint need be given. A script named `drain` is started as `hlaunch ./drain`.\n\n",
      DescribeOptions(DrainOptionRows()), DrainExitCodes());
}

std::string UndrainHelp() {
  return absl::StrCat(
      "usage: hlaunch undrain [JOB] NODE --rdzv-endpoint HOST[:PORT]\n\n"
      "Takes back an `hlaunch drain` of NODE that JOB (its --rdzv-id) could not do without so "
      "far.\n"
      "A script named `undrain` is started as `hlaunch ./undrain`.\n\n",
      DescribeOptions(UndrainOptionRows()), DrainExitCodes());
}

absl::Status ReadRequest(const TypedWords& read, DrainRequest& request) {
  request.reason = read.Get("--reason", "");
  for (const char letter : request.reason) {
    if (absl::ascii_iscntrl(letter)) return InvalidArgumentError("--reason: expected one line");
  }
  if (!read.Has("--within")) return absl::OkStatus();
  int seconds = 0;
  HLAUNCH_RETURN_IF_ERROR(read.ReadSeconds("--within", 1, kMostSeconds, &seconds));
  request.within = std::chrono::seconds(seconds);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DrainOptions> ParseDrainOptions(int argc, const char* const* argv) {
  const std::string word = argv[1];
  DrainOptions options;
  options.request.undrain = word == "undrain";
  HLAUNCH_ASSIGN_OR_RETURN(
      TypedWords read,
      ReadWords(absl::StrCat("hlaunch ", word),
                options.request.undrain ? UndrainOptionRows() : DrainOptionRows(),
                std::vector<std::string>(argv + 2, argv + argc), OptionPlace::kAnywhere));
  if (read.Has("--help")) {
    options.text_to_print = options.request.undrain ? UndrainHelp() : DrainHelp();
    return options;
  }
  if (read.rest.empty() || read.rest.size() > 2) {
    return InvalidArgumentError(
        absl::StrCat("hlaunch ", word, " takes a job and one of its nodes: hlaunch ", word,
                     " JOB NODE", "; to start a script of that name, write hlaunch ./", word));
  }
  options.request.node = read.rest.back();
  read.rest.pop_back();
  if (read.Has("--deadline")) {
    return InvalidArgumentError(
        "--deadline is for a host of the cluster of hlaunchd, and this is a node of a job: write "
        "--within S");
  }
  HLAUNCH_ASSIGN_OR_RETURN(options.words, ReadAskWords(word, read));
  HLAUNCH_RETURN_IF_ERROR(ReadRequest(read, options.request));
  return options;
}

}  // namespace hlaunch
