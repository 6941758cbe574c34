// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "proto/base/clock.h"
#include "rendezvous/net/resolver/found_host.h"

// Some name servers, and some firewalls before them, never answer a question for an IPv6 address. A
// resolver that asks for both families then gives an answer that it has had from the beginning only
// after 10 s to 20 s, for each name anew.

namespace hlaunch {

// How long a slow resolver is waited for. A value.
struct ResolverPatience {
  Duration both = std::chrono::milliseconds(500);  // For one answer about both families.
  Duration other = std::chrono::milliseconds(50);  // For the other family, once one has addresses.
};

// Asks the resolver about a host and a family, AF_UNSPEC for both. Blocks; called in any thread.
using AskResolverFn = std::function<FoundHost(const std::string& host, int family)>;

// Asks for both families at once. If that takes long, asks for each by itself too, and returns the
// first answer of the three that has addresses, or the last one if none has. `ask` may go on in
// threads that nobody waits for, so it must not refer to anything that ends before the process.
FoundHost AskInTime(const std::string& host, const AskResolverFn& ask,
                    const ResolverPatience& patience);

}  // namespace hlaunch
