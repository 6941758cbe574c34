// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `hlaunch` runs jobs of one node by itself, without gRPC. For all other jobs it is the keeper.

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "launcher/launch.h"

int main(int argc, char** argv) {
  const int exit_code = hlaunch::Launch(argc, argv, nullptr);
#ifndef HLAUNCH_SANITIZED
  // What libraries do at the end, such as OpenSSL, is done by the kernel in less time.
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(exit_code);
#endif
  return exit_code;
}
