// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns the seconds that `text` stands for, such as 30, 1.5, 30s, 5m, 5min, 2h, 1h30m or 1d;
// unset if it is no time. A number without a unit is in seconds, and may be negative. Pure.
std::optional<double> ReadSeconds(absl::string_view text);

// As ReadSeconds, rounded up to whole seconds, into `*out`. Returns whether it is a time from `min`
// to `max` seconds. Pure.
bool ReadWholeSeconds(absl::string_view text, int min, int max, int* out);

}  // namespace hlaunch
