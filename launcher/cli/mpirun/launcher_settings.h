// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

// What parameters and variables of other launchers say about where ranks run and how hosts are
// reached. All functions are pure. Their only error is InvalidArgument, which says what to write
// instead.

namespace hlaunch {

// The values of --mca, and of --prtemca and --pmixmca: a parameter's name and its value.
absl::Status TakeMca(absl::Span<const std::string> values, MpirunLine& line);
absl::Status TakeForeignMca(absl::Span<const std::string> values, MpirunLine& line);

// A parameter of a file of Open MPI's. A value.
struct FileParameter {
  std::string file;
  std::string name, value;
};

// Puts into `line` what these parameters say and it leaves open. Parameters that say nothing of
// where ranks run, or how hosts are reached, are for the ranks' own library, which reads the files
// itself. The error names the file and the parameter.
absl::Status TakeFileParameters(absl::Span<const FileParameter> parameters, MpirunLine& line);

// Puts into `line` what OMPI_MCA_*, PRTE_MCA_*, HYDRA_* and I_MPI_* say and its words leave open.
// The error names the variable.
absl::Status TakeLauncherVariables(const Environment& environment, MpirunLine& line);

}  // namespace hlaunch
