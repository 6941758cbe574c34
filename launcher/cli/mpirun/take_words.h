// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

// Functions that put words of mpirun into a line. All are pure. Their only error is
// InvalidArgument, which says what to write instead. Requires: `values` has as many values as the
// word takes.

namespace hlaunch {

absl::Status TakeRanks(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakePerNode(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakePerRound(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeHosts(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeHostfile(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeReportBindings(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeDisplay(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeVerbose(absl::Span<const std::string> values, MpirunLine& line);

absl::Status TakeVariable(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeOwnVariable(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeExport(absl::string_view what, MpirunLine& line);

absl::Status TakeTags(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeRankTags(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakePattern(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeOutput(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeOutputFilename(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeStdin(absl::Span<const std::string> values, MpirunLine& line);

absl::Status TakeLaunchAgent(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeShellArguments(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeLauncher(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakePrefix(absl::Span<const std::string> values, MpirunLine& line);

// Whether `option`, which is one of hlaunch's, is among the words of `line`.
bool Says(const MpirunLine& line, absl::string_view option);

// Leaves out what -x names and `environment` does not have, as mpirun does: lines for several sites
// name variables that not each of them sets. A remark names each.
void LeaveOutUnset(const Environment& environment, MpirunLine& line);

// Notes that `what` is for a part of mpirun that hlaunch does not have.
absl::Status ChangesNothing(absl::string_view what, MpirunLine& line);

}  // namespace hlaunch
