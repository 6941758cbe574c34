// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "launcher/cli/hosts/start_message.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// The file in the part's folder that tells the part's agent to let another node take its place.
inline constexpr char kLeaveNotice[] = "drain";

// Makes the message that tells `hlaunch hold --stdin` to run a part of a job. Its options are the
// user's, followed by those of an ordinary job that say which node this is, where it meets the
// others and which devices it has. `folder` is the part's job folder. Pure.
StartMessage StartOfPart(const PartOrder& order, const std::string& folder);

}  // namespace hlaunch
