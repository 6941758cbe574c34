// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// Returns the manual's page of the words of mpirun and mpiexec in Markdown, with a row for each of
// MpirunWords(). Pure.
std::string MpirunPage();

}  // namespace hlaunch
