// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "launcher/cluster/tasks/part_folder.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// All that is known of a part. A value.
struct PartSight {
  PartRecord record;
  JobFolderFacts said;
  bool lives = false;        // Its holder lives.
  int64_t now_ms = 0;        // Since 1970.
  std::string boot_id;       // The boot id of this host now.
  std::string host;          // This host's name in messages.
  std::string reachable_at;  // The address by which other hosts reach this one; empty: unknown.
};

// Returns what the head is told of a part. Pure.
PartTold TellPart(const PartSight& sight);

}  // namespace hlaunch
