// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "proto/base/clock.h"

namespace hlaunch {

// When a job is suspected to hang. A value.
struct HangRule {
  std::optional<Duration> timeout = {};  // Unset: learnt from the job. Zero: never.
};

}  // namespace hlaunch
