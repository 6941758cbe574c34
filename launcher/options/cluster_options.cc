// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cluster/place.h"
#include "launcher/options/option_table.h"

namespace hlaunch {
namespace {

absl::Status SetCluster(absl::string_view text, Options& options) {
  const std::vector<std::string> words = ClusterWords();
  if (std::find(words.begin(), words.end(), text) == words.end()) {
    return absl::InvalidArgumentError(absl::StrCat("expected one of ", absl::StrJoin(words, ", ")));
  }
  options.cluster = std::string(text);
  return absl::OkStatus();
}

const OptionRow kRows[] = {
    {"In a cluster", "", "--cluster", "NAME",
     "whose variables say this node's place: auto, none, slurm, ...", SetCluster},
    {"", "", "--explain-cluster", "",
     "print what was found of this node's place, and from where; --json", nullptr},
};

}  // namespace

absl::Span<const OptionRow> ClusterOptions() { return kRows; }

}  // namespace hlaunch
