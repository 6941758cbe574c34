// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// The simple commands in the text of a shell, each as its words without quotes, in order. `$(...)`
// stays in its word, and comments are left out. It is a guess for people's usual lines, not a
// parser of the shell's language. At most `most` commands. Pure.
std::vector<std::vector<std::string>> CommandsIn(absl::string_view text, size_t most);

// What words of a script mean at one place in it. A value.
struct ShellScope {
  std::string script;  // $0
  std::string folder;  // The working directory, with a slash at its end; empty: this process's.
  const Environment* environment = nullptr;
  std::map<std::string, std::string> variables = {};  // Those that the script has set.
};

// Returns `word` with variables and the usual ways to a script's own folder, such as
// `$(dirname "$0")`, replaced. What is not known becomes empty. Pure.
std::string Expand(absl::string_view word, const ShellScope& scope);

// Takes over into `scope` what `command` changes for those after it: cd, and variables. Pure.
void Follow(const std::vector<std::string>& command, ShellScope& scope);

}  // namespace hlaunch
