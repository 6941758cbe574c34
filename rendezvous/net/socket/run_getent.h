// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"

namespace hlaunch {

// Returns what `getent ahosts HOST` prints, at most 64 KiB; nothing if it cannot be run. Blocks for
// at most `patience`, then kills it. Does not use agent/workers/process, which is in a higher layer
// and belongs to one thread: here any thread may call, and other code that reaps children of this
// process may come first.
//
// Requires: `host` is not empty and does not begin with '-'.
std::string RunGetent(const std::string& host, Duration patience);

}  // namespace hlaunch
