// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Runs `hlaunch status` from its command line to its exit code.
//
// Requires: the command line begins with `status`.
int ShowStatus(int argc, char** argv);

}  // namespace hlaunch
