// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Runs `hlaunch devices`, from its command line to its exit code.
//
// Requires: the command line begins with `devices`.
int ShowDevices(int argc, char** argv);

}  // namespace hlaunch
