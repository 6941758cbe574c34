// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/strings/string_view.h"

namespace hlaunch {

// Whether `text` is a decimal number from `min` to `max`, which then is in `out`. Pure.
bool ParseInt(absl::string_view text, int min, int max, int* out);

}  // namespace hlaunch
