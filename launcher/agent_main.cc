// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// One program with two names. `hlaunch-rendezvous`: the rendezvous of many jobs as a service. By
// any other name `hlaunch-agent`: one node of a job with several nodes, started by `hlaunch` with
// the same words, the first one included; the terminal's end of a job on other hosts (--hosts); for
// a keeper whose agent was killed, the bearer of that news; `hlaunch status`, `why`, `stacks`,
// `drain` and `undrain`, and `hlaunch token --for-job`.

#include <filesystem>

#include "launcher/drain/drain_node.h"
#include "launcher/grpc/conduct_job.h"
#include "launcher/grpc/grpc_link.h"
#include "launcher/grpc/print_job_token.h"
#include "launcher/grpc/serve_jobs.h"
#include "launcher/grpc/show_ranks.h"
#include "launcher/grpc/show_status.h"
#include "launcher/launch.h"

namespace hlaunch {
namespace {

int RunAgent(int argc, char** argv) {
  return Launch(argc, argv, ConnectByGrpc,
                {{"status", ShowStatus},
                 {"why", ShowWhy},
                 {"stacks", ShowStacks},
                 {"drain", DrainNode},
                 {"undrain", UndrainNode},
                 {"token", PrintJobToken},
                 {kObituaryWord, SendObituary}},
                ConductJob);
}

int RunRendezvous(int argc, char** argv) { return ServeJobs(argc, argv, nullptr); }

struct Program {
  const char* name;
  int (*run)(int argc, char** argv);
};

constexpr Program kPrograms[] = {{"hlaunch-rendezvous", RunRendezvous}};

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  const std::filesystem::path name = std::filesystem::path(argv[0]).filename();
  for (const hlaunch::Program& program : hlaunch::kPrograms) {
    if (name == program.name) return program.run(argc, argv);
  }
  return hlaunch::RunAgent(argc, argv);
}
