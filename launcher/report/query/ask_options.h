// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/report/query/ask_words.h"
#include "rendezvous/job/question.h"

// `hlaunch why` and `hlaunch stacks`: their command lines. Pure.

namespace hlaunch {

// The options as read. A value.
struct AskOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  AskWords words;
  RankQuestion question;
  // No rendezvous was named: a job of this user on this host is meant, the only one if `words` name
  // none. Of `words` only the job and the form are set.
  bool here = false;
};

// Errors:
//   InvalidArgument - one line that names what is wrong and how to fix it.
//
// Requires: the command line begins with the command's word.
absl::StatusOr<AskOptions> ParseWhyOptions(int argc, const char* const* argv);
absl::StatusOr<AskOptions> ParseStacksOptions(int argc, const char* const* argv);

// The error NotFound: there is no such job here, and where else it may be. Empty `job_id`: no job
// was named. Pure.
absl::Status NoJobToAsk(const std::string& job_id);

}  // namespace hlaunch
