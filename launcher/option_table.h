// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/options.h"

namespace hlaunch {

// One option: the only place that knows its spelling, its help and how its value is read.
struct OptionRow {
  const char* group;       // Heading in --help; empty: the same as above.
  const char* short_name;  // "-m", or empty.
  const char* name;        // With dashes; the spelling with underscores follows from it.
  const char* value;       // What --help calls the value; empty: a flag.
  const char* help;

  // Puts the value into `options`; for a flag that was given, `value` means nothing.
  //
  // Errors:
  //   InvalidArgument - what is accepted instead; repeats neither name nor value.
  absl::Status (*set)(absl::string_view value, Options& options);
};

// All options in the order of --help.
absl::Span<const OptionRow> OptionTable();

}  // namespace hlaunch
