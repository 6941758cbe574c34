// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/hang/rank_picture.h"

// How the picture of a node's ranks travels to the node that judges them. Pure.

namespace hlaunch {

// Compact: what a rank has called last in each group, and all that is known of a group in which it
// waits. Some 300 bytes for a rank in a few groups.
std::string PictureText(const std::vector<RankPicture>& ranks);

// Unset: `text` is none. What is in it is bounded and may be shown on a terminal.
std::optional<std::vector<RankPicture>> ParsePictures(absl::string_view text);

}  // namespace hlaunch
