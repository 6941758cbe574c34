// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `hlaunch-agent`: one node of a job with several nodes, started by `hlaunch` with the same
// words; and, for a keeper whose agent was killed, the bearer of that news.

#include "launcher/grpc_link.h"
#include "launcher/launch.h"

int main(int argc, char** argv) {
  if (hlaunch::IsObituary(argc, argv)) return hlaunch::SendObituary(argc, argv);
  return hlaunch::Launch(argc, argv, hlaunch::ConnectByGrpc);
}
