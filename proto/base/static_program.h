// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/auxv.h>

namespace hlaunch {

// Whether this process runs a static program. It must load no library of the machine: that would
// bring along the machine's glibc, which is another one than the program's own.
inline bool IsStaticProgram() { return ::getauxval(AT_BASE) == 0; }  // No loader is there.

}  // namespace hlaunch
