// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/options/options.h"

namespace hlaunch {

// One option. Only this row knows its spelling, its help and how its value is read.
struct OptionRow {
  const char* group;       // Heading in --help. Empty: the group of the row above.
  const char* short_name;  // "-m", or empty.
  const char* name;        // With dashes; the spelling with underscores follows from it.
  const char* value;       // What --help calls the value. Empty: a flag. "[=X]": optional.
  const char* help;

  // Puts the value into `options`. For a flag, `value` means nothing. If an optional value was left
  // out, `value` is "true".
  //
  // Errors:
  //   InvalidArgument - says what is accepted; repeats neither the name nor the value.
  //
  // Null: the option is for the command line only, and the reader of the command line handles it.
  absl::Status (*set)(absl::string_view value, Options& options);

  bool has_pet = false;         // The variable PET_<NAME> is its default, as in torchrun.
  bool doubled_commas = false;  // The value is a list, where `,,` is a comma inside a word.
  bool repeats = false;         // The option may be given several times; each value counts.
  // Options that contradict this one, with blanks between them. Of two that come from different
  // sources, the one from the stronger source counts.
  const char* excludes = "";
  // What to say where both are from one source. Null: they are not refused, since their values
  // decide.
  const char* refusal = nullptr;

  bool takes_value() const { return value[0] != '\0' && value[0] != '['; }
  bool is_flag() const { return value[0] == '\0'; }
  bool in_config() const { return set != nullptr; }
};

inline constexpr bool kPet = true;
inline constexpr bool kNoPet = false;
inline constexpr bool kNoCommas = false;
inline constexpr bool kRepeats = true;
inline constexpr char kLeaveOneOut[] = ": leave one of them out";  // After the names of both.

// `row`, which excludes `others`.
constexpr OptionRow Excluding(const char* others, const char* refusal, OptionRow row) {
  row.excludes = others;
  row.refusal = refusal;
  return row;
}

// All options in the order of --help.
const std::vector<OptionRow>& OptionTable();

// Returns the option with the long or short name `word`, in either spelling and with or without
// `=value`, or null if there is none.
const OptionRow* FindOption(absl::string_view word);

// The parts of OptionTable(), each from a file of its own.
absl::Span<const OptionRow> NodeOptions();
absl::Span<const OptionRow> RendezvousOptions();
absl::Span<const OptionRow> StoreOptions();
absl::Span<const OptionRow> HostOptions();
absl::Span<const OptionRow> ClusterOptions();
absl::Span<const OptionRow> WorkerOptions();
absl::Span<const OptionRow> DeviceOptions();
absl::Span<const OptionRow> BindingOptions();
absl::Span<const OptionRow> OutputOptions();

// "--nproc-per-node" -> "--nproc_per_node": the other spelling of a long option.
std::string Underscored(absl::string_view name);

// For the setter of a flag's row: sets `*flag`.
inline absl::Status SetFlag(bool* flag) {
  *flag = true;
  return absl::OkStatus();
}

// For the setters of rows: a path, which must not be empty, and a time of at least `min_seconds`.
absl::Status SetFile(absl::string_view text, std::string* file);
absl::Status SetDuration(absl::string_view text, double min_seconds, Duration* out);

// The setter of a flag that ParseOptions handles afterwards.
inline absl::Status SetNothing(absl::string_view, Options&) { return absl::OkStatus(); }

}  // namespace hlaunch
