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

// What `--version -v` prints after that, a line each: how the program is linked, and the versions
// of the compiler and of the libraries that it was built with, with the distribution's revision
// where there is one. Written by CMakeLists.txt.
extern const char kBuiltWith[];

}  // namespace hlaunch
