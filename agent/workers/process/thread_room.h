// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"

namespace hlaunch {

// Checks that this process can start `count` threads at the same time.
//
// Errors: ResourceExhausted - the message says how many it can start, why, and the way out.
absl::Status CheckThreads(int count);

// Checks that an agent that meets others can start its threads, and those of gRPC. gRPC 1.51 counts
// a thread that it could not start, gives it work, and waits for it for ever. So call this before
// anything of gRPC's is made.
//
// Errors: as CheckThreads.
absl::Status CheckThreadsOfAgent();

}  // namespace hlaunch
