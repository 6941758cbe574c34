// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/report/query/ask_words.h"
#include "rendezvous/round/values/drained_node.h"

// `hlaunch drain` and `hlaunch undrain`: their command lines. Pure.

namespace hlaunch {

// The options as read. A value.
struct DrainOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  AskWords words;
  DrainRequest request;
};

// Errors:
//   InvalidArgument - one line that names what is wrong and how to fix it.
//
// Requires: the command line begins with the command's word.
absl::StatusOr<DrainOptions> ParseDrainOptions(int argc, const char* const* argv);

}  // namespace hlaunch
