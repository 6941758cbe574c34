// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_options.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/version.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {
namespace {

constexpr int kMostOfAUser = 1'000'000;

const OptionRow kRows[] = {
    {"", "", "--folder", "DIR", "what the head keeps (/var/lib/hlaunch-head)", nullptr},
    {"", "", "--listen", "PORT|HOST:PORT", "where hosts connect (29401 of all addresses)", nullptr},
    {"", "", "--join-at", "HOST:PORT", "what hosts are told to join at (this host's name)",
     nullptr},
    {"", "", "--max-running", "N", "jobs of a user that run at the same time (no limit)", nullptr},
    {"", "", "--max-nodes", "N", "nodes that those may have (no limit)", nullptr},
    {"", "", "--max-waiting", "N", "jobs of a user that wait (1000)", nullptr},
    {"", "", "--metrics-port", "PORT|ADDR:PORT", "serve metrics for Prometheus there", nullptr},
    {"", "-v", "--verbose", "", "say more", nullptr},
    {"", "", "--version", "", "print the version", nullptr},
    {"", "-h", "--help", "", "print this text", nullptr},
};

std::string Help() {
  return absl::StrCat(
      "usage: hlaunchd head [options]\n\n"
      "The head of your own cluster: knows its hosts and jobs, and starts each job where\n"
      "there is room. `hlaunch cluster init` makes its folder. Jobs go on without it.\n\n",
      DescribeOptions(kRows));
}

absl::Status Wrong(absl::string_view name, absl::string_view value, const absl::Status& status) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " '", PrintableLine(value), "': ", status.message()));
}

absl::Status ReadPlaces(const TypedWords& read, HeadOptions* options) {
  const std::string listen = read.Get("--listen", absl::StrCat(kClusterPort));
  const absl::StatusOr<Endpoint> endpoint = ParseListenPlace(listen, kClusterPort);
  if (!endpoint.ok()) return Wrong("--listen", listen, endpoint.status());
  options->listen = *endpoint;
  options->join_at = read.Get("--join-at", "");
  const std::string metrics = read.Get("--metrics-port", "");
  if (metrics.empty()) return absl::OkStatus();
  const absl::StatusOr<Endpoint> place = ParseMetricsPlace(metrics);
  if (!place.ok()) return Wrong("--metrics-port", metrics, place.status());
  options->metrics = *place;
  return absl::OkStatus();
}

absl::Status ReadLimit(const TypedWords& read, const char* name, int* limit) {
  if (!read.Has(name)) return absl::OkStatus();
  const std::string text = read.Get(name, "");
  if (ParseInt(text, 1, kMostOfAUser, limit)) return absl::OkStatus();
  return Wrong(
      name, text,
      absl::InvalidArgumentError(absl::StrCat("expected a number from 1 to ", kMostOfAUser)));
}

}  // namespace

absl::StatusOr<HeadOptions> ParseHeadOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read,
                           ReadWords("hlaunchd head", kRows, words, OptionPlace::kAnywhere));
  if (!read.rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("hlaunchd head takes options only, and here is ",
                                                   PrintableLine(read.rest[0])));
  }
  HeadOptions options;
  if (read.Has("--help")) options.text_to_print = Help();
  if (read.Has("--version")) options.text_to_print = absl::StrCat("hlaunchd ", VersionText(), "\n");
  options.folder = read.Get("--folder", options.folder);
  std::error_code error;
  const auto folder = std::filesystem::absolute(options.folder, error).lexically_normal();
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--folder ", options.folder, ": ", error.message()));
  }
  options.folder = folder.string();
  options.verbose = read.Has("--verbose");
  HLAUNCH_RETURN_IF_ERROR(ReadPlaces(read, &options));
  HLAUNCH_RETURN_IF_ERROR(ReadLimit(read, "--max-running", &options.limits.max_running));
  HLAUNCH_RETURN_IF_ERROR(ReadLimit(read, "--max-nodes", &options.limits.max_nodes));
  HLAUNCH_RETURN_IF_ERROR(ReadLimit(read, "--max-waiting", &options.limits.max_waiting));
  return options;
}

}  // namespace hlaunch
