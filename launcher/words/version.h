// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// The commit that this program was built from: "16e9676f0c12", "16e9676f0c12 with changes", or
// "unknown". Defined by cmake/write_commit.cmake.
extern const char kCommit[];

// What --version prints behind the program's name: the version, the commit and how it was built,
// "0.1.0 (commit 16e9676f0c12, Release, GCC 12.2.0)". Pure.
std::string VersionText();

}  // namespace hlaunch
