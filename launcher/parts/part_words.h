// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "launcher/hosts/start_message.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// The file in the part's folder that tells its agent to let another node take its place.
inline constexpr char kLeaveNotice[] = "drain";

// What `hlaunch hold --stdin` is told to run a part of a job: the words of an ordinary job that say
// which node this is, where it meets the others and which devices it has, behind those of the
// user. `folder` is the part's job folder. Pure.
StartMessage StartOfPart(const PartOrder& order, const std::string& folder);

}  // namespace hlaunch
