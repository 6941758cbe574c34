// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// store_proxy_main PORT [SECRET]: a node's proxy to the store at that port of loopback. It prints
// its own port and ends with stdin. With a SECRET, which the store must have too, it encrypts.

#include <cstdio>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/sealed_stream.h"
#include "rendezvous/store/c10d/store_proxy.h"

int main(int argc, char** argv) {
  int port = 0;
  if (argc < 2 || argc > 3 || !absl::SimpleAtoi(argv[1], &port)) {
    std::fprintf(stderr, "usage: store_proxy_main PORT [SECRET]\n");
    return 2;
  }
  auto listener = hlaunch::Listen("127.0.0.1", 0);
  if (!listener.ok()) {
    std::fprintf(stderr, "%s\n", listener.status().ToString().c_str());
    return 1;
  }
  hlaunch::StoreProxyOptions options{"127.0.0.1", static_cast<uint16_t>(port)};
  options.sealing_key = hlaunch::SealingKey(argc > 2 ? argv[2] : "");
  const auto proxy = hlaunch::StoreProxy::Start(*std::move(listener), options);
  if (!proxy.ok()) {
    std::fprintf(stderr, "%s\n", proxy.status().ToString().c_str());
    return 1;
  }
  std::printf("%u\n", (*proxy)->port());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}
