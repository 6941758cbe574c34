// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"

namespace hlaunch {

// What `getent ahosts HOST` prints, at most 64 KiB, and nothing where it cannot be run. Blocks for
// `patience` at most, then kills it. Not agent/process, which is a floor above and belongs to one
// thread: here any thread asks, and whoever else reaps children of this process may come first.
//
// Requires: `host` is not empty and does not begin with '-'.
std::string RunGetent(const std::string& host, Duration patience);

}  // namespace hlaunch
