// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// A job's secret: 32 random bytes in base64url. Ends the process if the kernel has none, since
// nothing may begin without one.
std::string RandomSecret();

}  // namespace hlaunch
