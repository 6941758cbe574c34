// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The manual page `name`(1) in the language of man(7), made of what `--help` prints, so that
// nothing is said twice: its usage, paragraphs, tables of options, examples and exit codes become
// the sections that readers of manuals know. `summary` is the line behind the name. Pure.
std::string ManPage(absl::string_view name, absl::string_view summary, absl::string_view help);

}  // namespace hlaunch
