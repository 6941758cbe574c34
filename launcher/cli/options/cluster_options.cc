// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/environment/scheduler/system_row.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::string_view;

absl::Status SetCluster(absl::string_view text, Options& options) {
  const std::vector<std::string> words = ClusterWords(options.cluster_systems);
  if (std::find(words.begin(), words.end(), text) == words.end()) {
    return absl::InvalidArgumentError(absl::StrCat("expected one of ", absl::StrJoin(words, ", ")));
  }
  options.cluster = std::string(text);
  return absl::OkStatus();
}

absl::Status SetClusterFile(absl::string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.cluster_systems, ReadSystems(std::string(text)));
  return absl::OkStatus();
}

absl::Status SetPlacingHosts(absl::string_view text, Options& options) {
  if (text.find_first_not_of("0123456789:") == text.npos) {
    return absl::InvalidArgumentError(
        "expected names of hosts, as in node1,node2; how many nodes there are, --nnodes says");
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<TargetHost> hosts, ParseHosts(text));
  options.placing.hosts.clear();
  for (const TargetHost& host : hosts) {
    if (!host.user.empty() || host.slots.has_value()) {
      return absl::InvalidArgumentError("expected names of hosts alone, as in node1,node2");
    }
    options.placing.hosts.push_back(host.name);
  }
  return absl::OkStatus();
}

absl::Status SetLabels(absl::string_view text, Options& options) {
  options.placing.labels = absl::StrSplit(text, ',');
  for (const std::string& label : options.placing.labels) {
    if (label.empty()) return absl::InvalidArgumentError("expected labels, as in a100,ib");
  }
  return absl::OkStatus();
}

const OptionRow kClusterRows[] = {
    {"In a cluster", "", "--cluster", "NAME",
     "whose variables say this node's place: auto, none, slurm, ...; hlaunchd: start the job on "
     "free hosts of this host's cluster",
     SetCluster},
    {"", "", "--nodes", "a,b", "of the cluster of hlaunchd, only these hosts", SetPlacingHosts},
    {"", "", "--constraint", "LABEL,...",
     "only hosts that have all of these labels (hlaunch nodes)", SetLabels},
    {"", "", "--exclusive", "", "no other job on the job's hosts",
     [](string_view, Options& options) { return SetFlag(&options.placing.exclusive); }},
    {"", "", "--cluster-file", "FILE",
     "a site's own systems and their variables, as JSON (HLAUNCH_CLUSTER_FILE)", SetClusterFile},
    {"", "", "--explain-cluster", "",
     "print what was found of this node's place, and from where; --json", nullptr},
};

}  // namespace

absl::Span<const OptionRow> ClusterOptions() { return kClusterRows; }

}  // namespace hlaunch
