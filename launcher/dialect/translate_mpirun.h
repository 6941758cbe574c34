// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/hosts/host_list.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// A command line of hlaunch that means what one of mpirun does. A value.
struct TranslatedLine {
  std::vector<std::string> words;            // argv, "hlaunch" first.
  std::vector<std::string> remarks;          // Of words that change nothing here; one line each.
  std::optional<std::string> text_to_print;  // Set: it asks for help, and runs nothing.
};

// Whether a program of this name is to take its command line as mpirun and mpiexec do.
bool IsMpirunName(absl::string_view argv0);

// A line of mpirun or mpiexec; `words` stand behind the program's name. What neither has may be an
// option of hlaunch. Of `environment` the variables count that set what mpirun's words do, or that
// -x names. `read` gives the text of the files that the line names. Pure but for that.
//
// Errors:
//   InvalidArgument - one line that names the word and the way out.
absl::StatusOr<TranslatedLine> TranslateMpirun(absl::Span<const std::string> words,
                                               const Environment& environment,
                                               const ReadTextFn& read);

// A line of hlaunch in which mpirun's words may stand for what hlaunch says otherwise; everything
// else stays as it is. Pure. Errors: as above.
absl::StatusOr<TranslatedLine> TranslateWithin(absl::Span<const std::string> words);

}  // namespace hlaunch
