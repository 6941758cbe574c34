// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns the manual page `name`(1) in the language of man(7). It is made from the text of
// `--help`, so nothing is written twice: usage, paragraphs, tables of options, examples and exit
// codes become the usual sections of a manual page. `summary` is the line after the name. Pure.
std::string ManPage(absl::string_view name, absl::string_view summary, absl::string_view help);

}  // namespace hlaunch
