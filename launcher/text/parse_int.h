// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/strings/string_view.h"

namespace hlaunch {

// Parses `text` into `*out`. Returns whether it is a decimal number from `min` to `max`. Pure.
bool ParseInt(absl::string_view text, int min, int max, int* out);

}  // namespace hlaunch
