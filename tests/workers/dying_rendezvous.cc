// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// An hlaunch-rendezvous that kills itself. `--die-at STEP:N`, its last two words, names the N-th
// time that its journal is about to open, write, sync, rename, remove or sync-directory.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <string>

#include "absl/strings/numbers.h"
#include "launcher/grpc/serve_jobs.h"
#include "proto/base/status_macros.h"

int main(int argc, char** argv) {
  HLAUNCH_CHECK(argc > 2 && std::string(argv[argc - 2]) == "--die-at");
  const std::string what = argv[argc - 1];
  const size_t colon = what.find(':');
  const char* const names[] = {"open", "write", "sync", "rename", "remove", "sync-directory"};
  const auto* const name = std::find(std::begin(names), std::end(names), what.substr(0, colon));
  const auto step = static_cast<hlaunch::Journal::Step>(name - std::begin(names));
  int count = 0;
  HLAUNCH_CHECK(name != std::end(names) && absl::SimpleAtoi(what.substr(colon + 1), &count));
  std::atomic<int> left(count);
  return hlaunch::ServeJobs(argc - 2, argv, [&](hlaunch::Journal::Step at, const std::string&) {
    if (at == step && --left == 0) ::raise(SIGKILL);
    return absl::OkStatus();
  });
}
