// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Gives this process, and all that it starts, a /tmp and a /var/tmp of its own, which are empty:
// folders in `folder`, which is made and only root can enter. All else is as it was, also what is
// mounted later on this host. Needs root; call where there is one thread.
//
// Errors:
//   ResourceExhausted - it cannot be done; the message says why.
absl::Status EnterPrivateTmp(const std::string& folder);

// Whether the absolute `path` is not seen any more then. Pure.
bool IsHiddenByPrivateTmp(absl::string_view path);

}  // namespace hlaunch
