// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/hosts/host_list.h"
#include "launcher/options/option_table.h"
#include "launcher/options/options.h"

namespace hlaunch {

// An option as it stands in the words. A value.
struct WrittenOption {
  const OptionRow* row = nullptr;  // Null: no option, such as a flag's short form with others.
  std::vector<std::string> words;
  std::string value;
};

// The options before the script, as typed, and then those that other sources gave. Pure.
std::vector<WrittenOption> WrittenOptions(const Options& options);

// The options that the agent on `host` gets, for node `rank` of `job_id`: those of this command
// line but what concerns starting, and what makes it one node of the job. Where the rendezvous is,
// only the agent knows. Pure.
std::vector<std::string> WordsForHost(const Options& options, const TargetHost& host, int rank,
                                      const std::string& job_id);

// Whether the command line, a variable or the configuration gives the option `name`. Pure.
bool SaysOption(const Options& options, absl::string_view name);

}  // namespace hlaunch
