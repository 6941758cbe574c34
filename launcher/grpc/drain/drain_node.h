// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Run `hlaunch drain` and `hlaunch undrain` from their command lines to their exit codes.
//
// Requires: the command line begins with the command's word.
int DrainNode(int argc, char** argv);
int UndrainNode(int argc, char** argv);

}  // namespace hlaunch
