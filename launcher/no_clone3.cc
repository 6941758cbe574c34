// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What the static programs have instead of glibc's clone3, see cmake/programs.cmake.
//
// glibc starts threads and processes with clone3, and uses clone only if that fails with ENOSYS.
// Old container runtimes refuse clone3 with EPERM: no thread could be started. glibc asks clone3
// for nothing that clone cannot do, so this one always leaves the work to clone.

#include <cerrno>
#include <cstddef>

// NOLINTNEXTLINE(bugprone-reserved-identifier): glibc's own name.
extern "C" int __clone3(void* /*arguments*/, size_t /*size*/, int (* /*function*/)(void*),
                        void* /*argument*/) {
  errno = ENOSYS;
  return -1;
}
