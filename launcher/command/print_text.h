// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdio>
#include <string>

#include "proto/contract/exit_code.h"

namespace hlaunch {

// Writes `text` to stdout, as the end of a command. Returns `exit_code`, or kExitInternal if stdout
// cannot be written.
inline int PrintText(const std::string& text, int exit_code = kExitOk) {
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? exit_code : kExitInternal;
}

}  // namespace hlaunch
