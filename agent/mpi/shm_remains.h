// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Whether a file of shared memory is one that MPICH, MVAPICH, Intel MPI or Open MPI makes, by its
// name. Pure.
bool IsOfMpi(absl::string_view name);

// Removes the shared memory of MPI programs that were killed: files in `directory` of such a name
// that are this user's, have changed since `since_ms` (of WallMillis) and that no process of this
// user has open or mapped. What it cannot remove stays. Returns how many it removed.
int RemoveMpiRemains(int64_t since_ms, const std::string& directory = "/dev/shm");

}  // namespace hlaunch
