// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

extern const char kRelease[];  // Of this program, as in "0.1.0".

// Why a peer of the release `theirs` ("0.3.0", whatever follows) and `own_name`, which has the
// release `own`, cannot work together. The text follows a name: "has hlaunch 0.3.0, the rendezvous
// has 0.1.0: …". Empty if they can: they are at most one minor release apart, while patches may
// differ, or one release is missing or cannot be read. Pure.
std::string WhyReleaseIsTooFar(absl::string_view theirs, absl::string_view own_name,
                               absl::string_view own);

}  // namespace hlaunch
