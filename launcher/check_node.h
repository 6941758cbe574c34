// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// All of `hlaunch check` from its command line to its exit code.
//
// Requires: IsCheckCommand.
int CheckNode(int argc, char** argv);

}  // namespace hlaunch
