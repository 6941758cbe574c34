// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "launcher/cli/mpirun/mpirun_line.h"

// How mpirun places ranks. All functions are pure. Their only error is InvalidArgument, which says
// what to write instead.

namespace hlaunch {

// The value of --bind-to: core, numa:report, core:2 …
absl::Status TakeBindTo(absl::Span<const std::string> values, MpirunLine& line);
// The value of --map-by: slot, ppr:4:node, socket:PE=4 …
absl::Status TakeMapBy(absl::Span<const std::string> values, MpirunLine& line);
// The value of --rank-by.
absl::Status TakeRankBy(absl::Span<const std::string> values, MpirunLine& line);

}  // namespace hlaunch
