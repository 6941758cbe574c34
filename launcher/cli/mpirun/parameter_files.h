// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/launcher_settings.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

// The files in which a user, a site or an image sets parameters of Open MPI and of PRRTE once for
// all lines: ~/.openmpi/mca-params.conf, and openmpi-mca-params.conf in the folder etc of the Open
// MPI that PATH finds.

namespace hlaunch {

// The files to look for, the strongest first. Pure.
std::vector<std::string> ParameterFiles(const Environment& environment);

// The parameters in the text of `file`, "NAME = VALUE" a line. Lines that are none are passed over,
// as by Open MPI. Pure.
std::vector<FileParameter> ParametersIn(absl::string_view text, const std::string& file);

// Puts into `line` what the files say of where ranks run and how hosts are reached, as far as
// `line` leaves that open. A file that `read` cannot read says nothing.
//
// Errors:
//   InvalidArgument - the file and the parameter that is refused, and what to write instead.
absl::Status TakeParameterFiles(const Environment& environment, const ReadTextFn& read,
                                MpirunLine& line);

}  // namespace hlaunch
