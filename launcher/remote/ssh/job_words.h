// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/options/options.h"

namespace hlaunch {

// An option as it was written. A value.
struct WrittenOption {
  const OptionRow* row = nullptr;  // Null if the word is no option of the table.
  std::vector<std::string> words;
  std::string value;
};

// The options before the script as typed, followed by those from other sources. Pure.
std::vector<WrittenOption> WrittenOptions(const Options& options);

// The options for the agent on `host`, node `rank` of `job_id`: those of this command line that do
// not concern starting, and those that make it one node of the job. The agent itself adds where the
// rendezvous is, since only the agent knows that. Pure.
std::vector<std::string> WordsForHost(const Options& options, const TargetHost& host, int rank,
                                      const std::string& job_id);

// The options for the agent on this host, whose workers would inherit all variables of this
// command: none, unless --export says which they get. Pure.
std::vector<std::string> ExportWords(const HostWish& wish);

// Whether the command line, a variable or the configuration gives the option `name`. Pure.
bool SaysOption(const Options& options, absl::string_view name);

}  // namespace hlaunch
