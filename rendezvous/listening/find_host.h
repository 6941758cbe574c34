// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The one place that asks what address a name has.
//
// A static program cannot load what nsswitch.conf names beside the file /etc/hosts and the name
// server (sss, resolve, mymachines, mdns): these are libraries for the very glibc that the machine
// has. It asks those two alone, as far as nsswitch.conf has them, and for a name that they do not
// know it asks the program `getent` of the machine, once, where nsswitch.conf names something else.

namespace hlaunch {

// What came of a question. A value.
struct FoundHost {
  std::vector<std::string> literals;  // As in address.h, in the resolver's order; empty: not found.
  int error = 0;                      // getaddrinfo's, where nothing was found.
  std::string why;                    // The same in words.
};

// The addresses of `host`, a name or a literal. Blocks as long as the resolver does, and where it
// asks getent for 5 s more. Thread-safe.
FoundHost FindHost(const std::string& host);

// From now on a static program asks OwnNameServices alone; of no effect on others. Call before
// other threads start.
void ChooseNameServices();

// What a static program can ask of the services that the text of an nsswitch.conf names for hosts,
// in its words: "files dns", also where it names none of these two. Pure.
std::string OwnNameServices(absl::string_view nsswitch);

// Whether that text names others. Pure.
bool NamesOtherServices(absl::string_view nsswitch);

// The addresses in what `getent ahosts` prints, each once. Pure, but for the names of this host's
// interfaces.
std::vector<std::string> AddressesInGetent(absl::string_view output);

}  // namespace hlaunch
