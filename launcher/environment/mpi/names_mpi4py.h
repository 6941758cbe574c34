// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/text/environment.h"

namespace hlaunch {

// Whether a Python command names mpi4py: as a module of it, in its code, or in the modules that its
// code imports from the script's own folder, from the working directory (for -m and -c) or from
// PYTHONPATH. Installed packages are not read. Reads at most a few dozen files. `argv[0]` is
// Python.
bool NamesMpi4py(const std::vector<std::string>& argv, const Environment& environment);

}  // namespace hlaunch
