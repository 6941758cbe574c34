// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Serves an empty store: prints its port and ends with stdin. A line "reset" resets it.

#include <cstdio>
#include <iostream>
#include <string>

#include "rendezvous/c10d_server.h"
#include "rendezvous/listen.h"

int main() {
  auto listener = hlaunch::Listen("", 0);
  if (!listener.ok()) {
    std::fprintf(stderr, "%s\n", listener.status().ToString().c_str());
    return 1;
  }
  auto server = hlaunch::C10dServer::Start(*std::move(listener));
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::printf("%u\n", (*server)->port());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    if (line != "reset") continue;
    (*server)->Reset();
    std::printf("reset\n");
    std::fflush(stdout);
  }
  return 0;
}
