// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/ask/ask_words.h"
#include "rendezvous/job/question.h"

// `hlaunch why` and `hlaunch stacks`: their command lines. Pure.

namespace hlaunch {

// The options as read. A value.
struct AskOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  AskWords words;
  RankQuestion question;
};

// Errors:
//   InvalidArgument - one line that names what is wrong and how to fix it.
//
// Requires: the command line begins with the command's word.
absl::StatusOr<AskOptions> ParseWhyOptions(int argc, const char* const* argv);
absl::StatusOr<AskOptions> ParseStacksOptions(int argc, const char* const* argv);

}  // namespace hlaunch
