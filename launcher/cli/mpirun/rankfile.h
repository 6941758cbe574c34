// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/mpirun/mpirun_line.h"

namespace hlaunch {

// Puts the content of an Open MPI rankfile, with lines as in "rank 0=host slot=0:1", into `line`:
// the hosts, the number of ranks and, for --bind, their slots. `file` is for messages. Pure.
//
// Errors:
//   InvalidArgument - names the file, the line and what was expected; or ranks are not numbered
//       host by host; or hosts' ranks have different slots; or `line` has options that exclude a
//       rankfile.
absl::Status TakeRankfile(absl::string_view text, absl::string_view file, MpirunLine& line);

}  // namespace hlaunch
