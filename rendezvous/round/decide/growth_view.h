// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Tells people why a running round is not as large as it could be. A view: use it at once, do not
// keep it.
struct GrowthView {
  absl::string_view who;        // Which nodes joined, in one line; empty if none.
  absl::string_view hold;       // Why the next round does not begin at once; may be empty.
  std::optional<Instant> at;    // When it begins at the latest; unset if unknown.
  bool wants_boundary = false;  // It begins at a good moment before that.
};

}  // namespace hlaunch
