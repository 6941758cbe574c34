// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launcher/dialect/mpirun_line.h"

namespace hlaunch {

// Puts into `line` what a rankfile of Open MPI says, "rank 0=host slot=0:1" a line: the hosts, the
// number of ranks and, for --bind, their slots. `file` is for messages. Pure.
//
// Errors:
//   InvalidArgument - file, line and what was expected; ranks that are not numbered host by host;
//       hosts whose ranks have different slots; what the line says beside it.
absl::Status TakeRankfile(absl::string_view text, absl::string_view file, MpirunLine& line);

}  // namespace hlaunch
