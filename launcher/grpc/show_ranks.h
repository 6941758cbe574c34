// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Run `hlaunch why` and `hlaunch stacks` from their command lines to their exit codes.
//
// Requires: the command line begins with the command's word.
int ShowWhy(int argc, char** argv);
int ShowStacks(int argc, char** argv);

}  // namespace hlaunch
