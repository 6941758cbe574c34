// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

namespace hlaunch {

// The control group that a part of `job` has where systemd makes none, in the hierarchy at `mount`.
// Pure.
std::string OwnGroup(const std::string& mount, uint64_t job);

// Writes `text` to a file of a control group, as one value. False: the kernel did not take it, and
// errno says why.
bool WriteGroupFile(const std::string& path, const std::string& text);

}  // namespace hlaunch
