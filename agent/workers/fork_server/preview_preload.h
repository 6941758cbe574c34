// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/workers/fork_server/plan_fork_servers.h"

namespace hlaunch {

// What a fork server would import. A value.
struct PreloadPreview {
  std::vector<std::string> taken;
  std::vector<std::pair<std::string, std::string>>
      left;             // By name: why ranks import it themselves.
  std::string problem;  // Why it is not known; empty if it is.
};

// Asks the plan's own Python, which reads the script and imports nothing. Whether a module starts
// threads or opens devices shows only once it is imported. Blocks, at most 10 s.
PreloadPreview PreviewPreload(const ForkServerPlan& plan);

// "torch, numpy; not jax: its threads do not live through a fork". Pure.
std::string ToText(const PreloadPreview& preview);

}  // namespace hlaunch
