// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/daemon/daemon_config.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// Where this host's daemon looks. A value.
struct HostPlaces {
  std::string program;  // `hlaunch`, by its path.
  std::string parts;    // The folder of parts.
  std::string
      sysroot;  // "": this machine; else the one that DIR/sys, DIR/proc and DIR/dev describe.
};

// What there is to say of this host: its devices, its slots, and why it is unfit, if it is. Cheap:
// it reads names in /sys and /dev, and opens no device.
HostFacts LookAtHost(const DaemonConfig& config, const HostPlaces& places);

}  // namespace hlaunch
