// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Expands each line of standard input: prints the hosts between spaces, or "!" and the error. For
// hostlist_differential_test.py.

#include <iostream>
#include <string>

#include "absl/strings/str_join.h"
#include "launcher/environment/scheduler/hostlist.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto hosts = hlaunch::ExpandHostlist(line, 1 << 16);
    std::cout << (hosts.ok() ? absl::StrJoin(*hosts, " ")
                             : "! " + std::string(hosts.status().message()))
              << "\n";
  }
}
