// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/options/options.h"

namespace hlaunch {

// One option: the only place that knows its spelling, its help and how its value is read.
struct OptionRow {
  const char* group;       // Heading in --help; empty: the same as above.
  const char* short_name;  // "-m", or empty.
  const char* name;        // With dashes; the spelling with underscores follows from it.
  const char* value;       // What --help calls the value; empty: a flag; "[=X]": may be left out.
  const char* help;

  // Puts the value into `options`; for a flag that was given, `value` means nothing, and where
  // one was left out it is "true".
  //
  // Errors:
  //   InvalidArgument - what is accepted instead; repeats neither name nor value.
  //
  // Null: it is for the command line only, and whoever reads that looks at it itself.
  absl::Status (*set)(absl::string_view value, Options& options);

  bool has_pet = false;         // As for torchrun, PET_<NAME> is its default.
  bool doubled_commas = false;  // Its value is a list, and `,,` is a comma of a word.
  bool repeats = false;         // It may be given several times, and each of them counts.

  bool takes_value() const { return value[0] != '\0' && value[0] != '['; }
  bool is_flag() const { return value[0] == '\0'; }
  bool in_config() const { return set != nullptr; }
};

inline constexpr bool kPet = true;
inline constexpr bool kNoPet = false;

// All options in the order of --help.
const std::vector<OptionRow>& OptionTable();

// The option whose long or short name `word` is, in either spelling and with or without `=value`;
// null if there is none.
const OptionRow* FindOption(absl::string_view word);

// The parts of it, one file each.
absl::Span<const OptionRow> HostOptions();
absl::Span<const OptionRow> RendezvousOptions();
absl::Span<const OptionRow> ClusterOptions();
absl::Span<const OptionRow> WorkerOptions();
absl::Span<const OptionRow> DeviceOptions();
absl::Span<const OptionRow> BindingOptions();
absl::Span<const OptionRow> OutputOptions();

// "--nproc-per-node" -> "--nproc_per_node": the other spelling of a long option.
std::string Underscored(absl::string_view name);

// For a row of a flag: sets `*flag`.
inline absl::Status SetFlag(bool* flag) {
  *flag = true;
  return absl::OkStatus();
}

// For a flag that ParseOptions looks at afterwards.
inline absl::Status SetNothing(absl::string_view, Options&) { return absl::OkStatus(); }

}  // namespace hlaunch
