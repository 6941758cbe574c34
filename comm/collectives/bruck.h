// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "comm/collectives/communicator.h"

namespace hlaunch {

// into = `from` of rank 0, of rank 1, …; all have the same size. See all_gather.cc.
absl::Status GatherBruck(Communicator& comm, std::span<const std::byte> from, std::byte* into);

}  // namespace hlaunch
