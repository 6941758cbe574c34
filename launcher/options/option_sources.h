// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/options/option_table.h"
#include "launcher/words/environment.h"

// Where values of options come from beside the command line.

namespace hlaunch {

// The stronger source wins; the order of these numbers is that of strength.
enum class OptionSource { kCluster, kEnvironment, kConfigFile, kCommandLine };

// One option's value and where it was found. A value.
struct FoundValue {
  const OptionRow* row = nullptr;
  std::string value;  // Of a flag "true", or "false" where a source says that it is off.
  OptionSource source = OptionSource::kCommandLine;
  std::string origin;  // For people: "--nnodes", "PET_NNODES", "job.json: nnodes".
};

// What a configuration says. A value.
struct Config {
  std::vector<FoundValue> values;
  std::vector<std::string> command;  // The script and its arguments; empty: it names none.
};

// torchrun's PET_<OPTION> for the options that have it there, and its
// TORCH_ELASTIC_SHUTDOWN_TIMEOUT. What is empty is not set.
//
// Errors:
//   InvalidArgument - a flag's variable is no number; the message names it.
absl::StatusOr<std::vector<FoundValue>> FindInEnvironment(const Environment& environment);

// A configuration: one JSON object, where // and /* */ begin comments, whose keys are long options
// without dashes and whose values are text, numbers, true, false or lists of text and numbers.
// One more key, `command`, lists the script and its arguments. `file` is for messages. Pure.
//
// Errors:
//   InvalidArgument - one line with the file, and the line or key.
absl::StatusOr<Config> ParseConfig(absl::string_view text, absl::string_view file);

// ParseConfig of what `path` holds, which is at most a mebibyte.
//
// Errors:
//   InvalidArgument - as ParseConfig, or it cannot be read.
absl::StatusOr<Config> ReadConfig(const std::string& path);

}  // namespace hlaunch
