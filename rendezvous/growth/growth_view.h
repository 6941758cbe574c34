// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Why a running round is not as large as it could be, for people. A view: it is used at once, and
// not kept.
struct GrowthView {
  absl::string_view who;        // Who joined, in one line; empty: nobody.
  absl::string_view hold;       // Why the next round does not begin at once; may be empty.
  std::optional<Instant> at;    // When it does at the latest; unset: that is not known.
  bool wants_boundary = false;  // It begins at a good moment before that.
};

}  // namespace hlaunch
