// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/hang/rank_snapshot.h"

// The text form in which the snapshot of a node's ranks travels to the node that judges. Pure.

namespace hlaunch {

// Compact: it has a rank's last call in each group, and everything known of a group in which the
// rank waits. About 300 bytes for a rank in a few groups. If it would be longer than `max_bytes`,
// the ranks with the most to tell are hidden: it has their places, and none of their groups.
std::string SnapshotText(const std::vector<RankSnapshot>& ranks,
                         size_t max_bytes = std::string::npos);

// Unset if `text` is something else. The content is bounded and may be shown on a terminal.
std::optional<std::vector<RankSnapshot>> ParseSnapshots(absl::string_view text);

}  // namespace hlaunch
