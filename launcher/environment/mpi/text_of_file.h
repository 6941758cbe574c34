// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

namespace hlaunch {

bool IsFile(const std::string& path);

// "a/" of "a/b", and "./" of "b". Pure.
std::string FolderOf(const std::string& path);

// The first bytes of a regular file, at most `most`; empty if it is none, or cannot be read.
std::string TextOfFile(const std::string& path, size_t most = size_t{1} << 20);

}  // namespace hlaunch
