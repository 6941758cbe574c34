// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launcher/text/environment.h"

// What a name stands for on this host, as a shell sees it.

namespace hlaunch {

// A pipe or a socket gives its bytes to one reader, once.
enum class FileKind { kNone, kDirectory, kPipe, kFile };

// Follows links.
FileKind KindOf(const std::string& path);

bool IsExecutable(const std::string& path);

bool HasSlash(absl::string_view name);

// Returns this process's directory, or "." if the kernel does not tell it.
std::string WorkingDirectory();

// Returns `path` as seen from the root. Follows no links.
std::string Absolute(const std::string& path);

// Returns the value of PATH in `environment`, or that of a shell without PATH.
std::string PathVariable(const Environment& environment);

// Returns the first program `name` in the folders of PATH. Requires: `name` has no slash.
std::optional<std::string> FindInPath(const std::string& name, const Environment& environment);

}  // namespace hlaunch
