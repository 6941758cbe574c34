// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// The commit that this program was built from: "16e9676f0c12", "16e9676f0c12 with changes", or
// "unknown". Defined by cmake/write_commit.cmake.
extern const char kCommit[];

// Returns what --version prints after the program's name: the version, the commit and how the
// program was built, "0.1.0 (commit 16e9676f0c12, Release, GCC 12.2.0)". Pure.
std::string VersionText();

// What `--version -v` prints after that, one line for each fact: how the program is linked, and the
// versions of the compiler and the libraries that it was built with, with the distribution's
// revision if there is one. Written by CMakeLists.txt.
extern const char kBuiltWith[];

}  // namespace hlaunch
