// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

extern const char kRelease[];  // Of this program: "0.1.0".

// Why one that has the release `theirs` ("0.3.0", whatever follows) and `own_name`, which has
// `own`, cannot work together, to follow a name: "has hlaunch 0.3.0, the rendezvous has 0.1.0: …".
// Empty: they can, being at most one minor release apart; patches differ freely. So it is where one
// of the two says none, or none that can be read. Pure.
std::string WhyReleaseIsTooFar(absl::string_view theirs, absl::string_view own_name,
                               absl::string_view own);

}  // namespace hlaunch
