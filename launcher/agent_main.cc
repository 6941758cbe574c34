// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// One program with two names. As `hlaunch-rendezvous` it is the rendezvous of many jobs as a
// service. Under any other name it is `hlaunch-agent`, which `hlaunch` starts with the same command
// line, the first word included: for one node of a job with several nodes; for the process at the
// terminal of a job on other hosts (--hosts); for a keeper whose agent was killed, to report the
// death; and for `hlaunch status`, `why`, `stacks`, `drain`, `undrain`, `token --for-job` and
// `token --for-page`.

#include <filesystem>

#include "agent/workers/process/lack.h"
#include "launcher/grpc/conduct_job.h"
#include "launcher/grpc/drain/drain_node.h"
#include "launcher/grpc/link/death_report.h"
#include "launcher/grpc/link/grpc_link.h"
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
                 {kDeathReportWord, SendDeathReport}},
                ConductJob);
}

int RunRendezvous(int argc, char** argv) {
  SayWhatIsLacking();
  return ServeJobs(argc, argv, nullptr);
}

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
