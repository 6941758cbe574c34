// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/options/option_table.h"

// Divides a command line into the options of a table and the rest. Values are not read here.

namespace hlaunch {

// An option that was typed. A value.
struct TypedOption {
  const OptionRow* row;
  std::string value;  // Of a repeated option the last; of a flag "true".
};

// A command line, divided. A value.
struct TypedWords {
  std::vector<TypedOption> given;  // In the order of the table.
  std::vector<std::string> rest;   // What no option took.

  // By the long name, with dashes.
  bool Has(absl::string_view name) const;
  std::string Get(absl::string_view name, absl::string_view otherwise) const;
};

// Where options may stand.
enum class OptionPlace {
  kBeforeScript,  // The first word that no option takes begins the rest; it may look like an
                  // option.
  kAnywhere,      // The rest holds no word that looks like an option.
};

// `words` are what stands behind the program's or command's name, which is `name` in messages.
// Long options may be written with dashes or underscores. Pure.
//
// Errors:
//   InvalidArgument - one line that names the word and the way out.
absl::StatusOr<TypedWords> ReadWords(absl::string_view name, absl::Span<const OptionRow> table,
                                     const std::vector<std::string>& words, OptionPlace place);

// Says that `table` has no option `word`, and the nearest that it has. Pure.
absl::Status UnknownWord(absl::string_view name, absl::Span<const OptionRow> table,
                         absl::string_view word);

}  // namespace hlaunch
