// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// c10d_server_main [DIALECT [SECRET]]: serves an empty store, prints its port and ends with stdin.
// A line "reset" resets the store.

#include <cstdio>
#include <iostream>
#include <string>

#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/sealed_stream.h"
#include "rendezvous/store/c10d/c10d_server.h"

int main(int argc, char** argv) {
  const auto dialect = hlaunch::ParseC10dDialect(argc > 1 ? argv[1] : "auto");
  if (!dialect.ok()) {
    std::fprintf(stderr, "%s\n", dialect.status().ToString().c_str());
    return 2;
  }
  hlaunch::C10dServerOptions options;
  options.older = *dialect;
  options.sealing_key = hlaunch::SealingKey(argc > 2 ? argv[2] : "");
  auto listener = hlaunch::Listen("", 0);
  if (!listener.ok()) {
    std::fprintf(stderr, "%s\n", listener.status().ToString().c_str());
    return 1;
  }
  auto server = hlaunch::C10dServer::Start(*std::move(listener), options);
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
