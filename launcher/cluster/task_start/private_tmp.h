// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Gives this process, and all that it starts, an empty /tmp and /var/tmp of its own. They are
// folders in `folder`, which this function makes and only root can enter. All other folders stay
// the same, including what the host mounts later. Needs root. Call where there is one thread.
//
// Errors:
//   ResourceExhausted - a step failed; the message says why.
absl::Status EnterPrivateTmp(const std::string& folder);

// Returns true if a private /tmp or /var/tmp hides the absolute `path`. Pure.
bool IsHiddenByPrivateTmp(absl::string_view path);

}  // namespace hlaunch
