// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/hosts/host_list.h"
#include "launcher/remote/starter.h"

// Hosts that are reached through one other host, whose sshd drops connections when too many come
// at once.

namespace hlaunch {

// What the ways of several hosts have in common, as `ssh -G` has it in `settings`: the first host
// of a ProxyJump, else the whole ProxyCommand; empty: the way is a host's own. Pure.
std::string JumpHostOf(absl::string_view settings);

// Whether ssh's configuration, of which `text` is a file, may name such hosts. Pure.
bool MayNameJumpHosts(absl::string_view text);

// The same of each host; empty where ssh is not what starts it. Asks ssh, once for each host, where
// there are more than a few and its configuration may name any.
std::vector<std::string> FindJumpHosts(const Starter& starter, const std::vector<TargetHost>& hosts,
                                       const std::vector<bool>& own);

}  // namespace hlaunch
