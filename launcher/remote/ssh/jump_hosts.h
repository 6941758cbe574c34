// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/remote/ssh/starter.h"

// Jump hosts: several hosts are reached through one other host, whose sshd drops connections when
// too many arrive at once.

namespace hlaunch {

// Returns what several hosts share on the way to them. `settings` is the output of `ssh -G`. The
// result is the first host of a ProxyJump, else the whole ProxyCommand; empty if the host is
// reached directly. Pure.
std::string JumpHostOf(absl::string_view settings);

// Whether the text of a file of ssh's configuration may name jump hosts. Pure.
bool MayNameJumpHosts(absl::string_view text);

// Returns JumpHostOf for each host; empty for hosts that ssh does not start. Asks ssh once per
// host, but only if there are more than a few hosts and ssh's configuration may name jump hosts.
std::vector<std::string> FindJumpHosts(const Starter& starter, const std::vector<TargetHost>& hosts,
                                       const std::vector<bool>& own);

}  // namespace hlaunch
