// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/auxv.h>

namespace hlaunch {

// Whether this process runs a static program. Such a program must not load a library of the
// machine: that would also load the machine's glibc, which differs from the program's own.
inline bool IsStaticProgram() { return ::getauxval(AT_BASE) == 0; }  // It has no loader.

}  // namespace hlaunch
