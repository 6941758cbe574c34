// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `hlaunch-agent`: one node of a job with several nodes, started by `hlaunch` with the same
// words; for a keeper whose agent was killed, the bearer of that news; `hlaunch status`, `why` and
// `stacks`, and `hlaunch token --for-job`.

#include "launcher/grpc/grpc_link.h"
#include "launcher/grpc/print_job_token.h"
#include "launcher/grpc/show_ranks.h"
#include "launcher/grpc/show_status.h"
#include "launcher/launch.h"

int main(int argc, char** argv) {
  return hlaunch::Launch(argc, argv, hlaunch::ConnectByGrpc,
                         {{"status", hlaunch::ShowStatus},
                          {"why", hlaunch::ShowWhy},
                          {"stacks", hlaunch::ShowStacks},
                          {"token", hlaunch::PrintJobToken},
                          {hlaunch::kObituaryWord, hlaunch::SendObituary}});
}
