// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// Returns a job's secret: 32 random bytes in base64url. Ends the process if the kernel gives no
// random bytes, since no job may begin without a secret.
std::string RandomSecret();

}  // namespace hlaunch
