// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// True if the name of a shared memory file is one that MPICH, MVAPICH, Intel MPI or Open MPI uses.
// Pure.
bool IsOfMpi(absl::string_view name);

// Removes the shared memory of MPI programs that were killed: files in `directory` with such a name
// that belong to this user, have changed since `since_ms` (of WallMillis) and that no process of
// this user has open or mapped. Files that it cannot remove stay. Returns how many it removed.
int RemoveMpiRemains(int64_t since_ms, const std::string& directory = "/dev/shm");

}  // namespace hlaunch
