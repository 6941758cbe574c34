// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/cluster/daemon/daemon_config.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// The paths that describe this host. A value.
struct HostPlaces {
  std::string program;  // `hlaunch`, by its path.
  std::string parts;    // The folder that has the parts.
  std::string sysroot;  // The DIR of DIR/sys, DIR/proc and DIR/dev; "": this machine.
};

// Returns the facts about this host: its devices, its slots, and why it is unfit, if it is. Cheap:
// it reads names in /sys and /dev, and opens no device.
HostFacts LookAtHost(const DaemonConfig& config, const HostPlaces& places);

}  // namespace hlaunch
