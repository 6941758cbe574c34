// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "launcher/parts/part_folder.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What there is to say of a part. A value.
struct PartSight {
  PartRecord record;
  JobFolderFacts said;
  bool lives = false;        // Its holder does.
  int64_t now_ms = 0;        // Since 1970.
  std::string boot_id;       // Of this host now.
  std::string host;          // This one, for people,
  std::string reachable_at;  // and the address by which others reach it; empty: unknown.
};

// What the head is told of a part. Pure.
PartTold TellPart(const PartSight& sight);

}  // namespace hlaunch
