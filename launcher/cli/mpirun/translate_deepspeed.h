// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/translate_mpirun.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Whether a program of this name reads its command line as DeepSpeed's launcher does: deepspeed,
// ds.
bool IsDeepspeedName(absl::string_view argv0);

// Translates a line of DeepSpeed's launcher (0.19.8, and the words that it had before). `words`
// follow the program's name. `read` returns the text of a hostfile, and of the files that name
// variables for other hosts; the rest is pure. Ranks find modules in `directory`, as there.
//
// Errors:
//   InvalidArgument - one line that names the word and how to fix it.
absl::StatusOr<TranslatedLine> TranslateDeepspeed(absl::Span<const std::string> words,
                                                  const Environment& environment,
                                                  const std::string& directory,
                                                  const ReadTextFn& read);

// Returns the value of PYTHONPATH for the ranks of such a line: `directory` comes first. Pure.
std::string DeepspeedPythonPath(const Environment& environment, const std::string& directory);

}  // namespace hlaunch
