// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// A command line of hlaunch with the meaning of one of mpirun. A value.
struct TranslatedLine {
  std::vector<std::string> words;            // argv, "hlaunch" first.
  std::vector<std::string> remarks;          // On words that change nothing here; one line each.
  std::string ssh_arguments;                 // For kEnvSshArgs, behind those that are there.
  std::optional<std::string> text_to_print;  // Set if it asks for help; nothing runs then.
};

// Whether a program of this name reads its command line as mpirun and mpiexec do: these two, and
// the names under which Open MPI, MPICH and Intel MPI have them besides, such as mpiexec.hydra.
bool IsMpirunName(absl::string_view argv0);

// Translates a line of mpirun or mpiexec. `words` follow the program's name. A word that neither of
// them has may be an option of hlaunch. Of `environment`, only variables that replace words of
// mpirun or that -x names are used, and a scheduler's. `read` returns the text of the files that
// the line names; a scheduler's list of hosts is read besides, and the rest is pure. By the name
// `argv0` of Hydra a line may have more ranks than its job has slots.
//
// Errors:
//   InvalidArgument - one line that names the word and how to fix it.
absl::StatusOr<TranslatedLine> TranslateMpirun(absl::Span<const std::string> words,
                                               const Environment& environment,
                                               const ReadTextFn& read,
                                               absl::string_view argv0 = "mpirun");

// Translates a line of hlaunch in which words of mpirun may replace options of hlaunch. Everything
// else stays as it is. Pure. Errors: as above.
absl::StatusOr<TranslatedLine> TranslateWithin(absl::Span<const std::string> words);

}  // namespace hlaunch
