// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/net/resolver/found_host.h"

// Only this file asks for the address of a name.
//
// A static program can use only two of the services in nsswitch.conf: the file /etc/hosts and the
// name server. The others (sss, resolve, mymachines, mdns) are libraries for exactly the machine's
// glibc, which it cannot load. So it asks those two, as far as nsswitch.conf has them. If they do
// not know a name and nsswitch.conf names other services, it runs the machine's program `getent`
// once.

namespace hlaunch {

// Returns the addresses of `host`, a name or a literal. Blocks until the resolver has addresses of
// one family, else as long as it does, and up to 5 s more if it runs getent. A question about the
// other family may go on in a thread that nobody waits for. Thread-safe.
FoundHost FindHost(const std::string& host);

// Makes a static program use OwnNameServices only; has no effect on other programs. Call it before
// other threads start.
void ChooseNameServices();

// Returns those services for hosts in the text of an nsswitch.conf that a static program can use,
// in the syntax of that file; "files dns" if the text names neither. Pure.
std::string OwnNameServices(absl::string_view nsswitch);

// Returns whether that text names other services. Pure.
bool NamesOtherServices(absl::string_view nsswitch);

// Returns the addresses in the output of `getent ahosts`, each once. Pure, except for the names of
// this host's interfaces.
std::vector<std::string> AddressesInGetent(absl::string_view output);

}  // namespace hlaunch
