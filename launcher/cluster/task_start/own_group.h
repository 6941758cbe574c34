// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

namespace hlaunch {

// Returns the path of the control group that a part of `job` gets if systemd makes none, in the
// hierarchy at `mount`. Pure.
std::string OwnGroup(const std::string& mount, uint64_t job);

// Writes `text` to a file of a control group in one write. Returns false if the kernel refused it;
// errno says why.
bool WriteGroupFile(const std::string& path, const std::string& text);

}  // namespace hlaunch
