// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// The command lines of hlaunch's smaller commands, which start nothing: a table of options, and
// words. (That of a job, which ends where the script begins, is read by `options`.)

namespace hlaunch {

struct WordRow {
  const char* short_name;  // "-v", or empty.
  const char* name;        // With dashes; underscores will do as well.
  const char* value;       // What --help calls the value; empty: a flag.
  const char* help;
};

// A value.
struct CommandWords {
  std::map<std::string, std::string> given;  // By name; of a repeated option the last value.
  std::vector<std::string> rest;             // What is no option.

  bool Has(const std::string& name) const { return given.contains(name); }
  std::string Get(const std::string& name, const std::string& otherwise) const;
};

// `words` are what stands behind the command, which `command` names in messages.
//
// Errors:
//   InvalidArgument - one line that names the word and the way out.
absl::StatusOr<CommandWords> ReadWords(absl::string_view command, absl::Span<const WordRow> table,
                                       const std::vector<std::string>& words);

// One line for each row, as in --help.
std::string DescribeWords(absl::Span<const WordRow> table);

}  // namespace hlaunch
