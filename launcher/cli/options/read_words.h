// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/options/option_table.h"
#include "proto/contract/ids.h"

// Divides a command line into the options of a table and the rest. Values are not read here.

namespace hlaunch {

// An option that was typed. A value.
struct TypedOption {
  const OptionRow* row;
  std::string value;  // For a flag "true".
};

// A command line, divided. A value.
struct TypedWords {
  // In the order of the table. An option that may not be repeated has only its last value here.
  std::vector<TypedOption> given;
  std::vector<std::string> rest;  // The words that no option took.

  // `name` is the long name, with dashes.
  bool Has(absl::string_view name) const;
  std::string Get(absl::string_view name, absl::string_view otherwise) const;

  // Reads a time in whole seconds, from `min` to `max`, or ranks such as 0-3,7, which are sorted
  // then. Leaves `*out` alone if the option was not typed.
  //
  // Errors:
  //   InvalidArgument - one line that names option and value, and what is accepted.
  absl::Status ReadSeconds(absl::string_view name, int min, int max, int* out) const;
  absl::Status ReadRanks(absl::string_view name, std::vector<Rank>* out) const;
};

// Where options may stand on the command line.
enum class OptionPlace {
  kBeforeScript,  // The first word that no option takes begins the rest, even if it looks like an
                  // option.
  kAnywhere,      // Anywhere. An unknown word that looks like an option is an error.
};

// Divides `words`, which follow the name of the program or command on the command line. `name` is
// this name in messages. Long options may be written with dashes or underscores. Pure.
//
// Errors:
//   InvalidArgument - one line that names the word and the way out.
absl::StatusOr<TypedWords> ReadWords(absl::string_view name, absl::Span<const OptionRow> table,
                                     const std::vector<std::string>& words, OptionPlace place);

// Returns an error which says that `table` has no option `word`, and which suggests the option with
// the nearest spelling. `where` says where the user may look if there is none. Pure.
absl::Status UnknownWord(absl::Span<const OptionRow> table, absl::string_view word,
                         absl::string_view where);

}  // namespace hlaunch
