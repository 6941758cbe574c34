// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/environment.h"

// The sources of option values other than the command line.

namespace hlaunch {

// From the weakest to the strongest source. The stronger source wins.
enum class OptionSource { kCluster, kEnvironment, kConfigFile, kCommandLine };

// One option's value and where it was found. A value.
struct FoundValue {
  const OptionRow* row = nullptr;
  std::string value;  // For a flag "true", or "false" if a source turns it off.
  OptionSource source = OptionSource::kCommandLine;
  std::string origin;  // For people: "--nnodes", "PET_NNODES", "job.json: nnodes".
};

// What a configuration says. A value.
struct Config {
  std::vector<FoundValue> values;
  std::vector<std::string> command;  // The script and its arguments; empty: it names none.
};

// Reads torchrun's variables: PET_<OPTION> for the options that have such a variable in torchrun,
// and TORCH_ELASTIC_SHUTDOWN_TIMEOUT. An empty variable counts as not set.
//
// Errors:
//   InvalidArgument - the variable of a flag is not a number; the message names the variable.
absl::StatusOr<std::vector<FoundValue>> FindInEnvironment(const Environment& environment);

// Reads a configuration: one JSON object, which may have // and /* */ comments. Its keys are long
// options without dashes; its values are text, numbers, true, false or lists of text and numbers.
// One more key, `command`, lists the script and its arguments. `file` is for messages. Pure.
//
// Errors:
//   InvalidArgument - one line with the file, and the line or key.
absl::StatusOr<Config> ParseConfig(absl::string_view text, absl::string_view file);

// Reads the file `path`, of at most 1 MiB, and parses it with ParseConfig.
//
// Errors:
//   InvalidArgument - as ParseConfig, or the file cannot be read.
absl::StatusOr<Config> ReadConfig(const std::string& path);

}  // namespace hlaunch
