// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Writes the jobs of the tests as snapshots into a folder, for a browser: status_gallery FOLDER.
// Prints what a terminal shows of them.

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "launcher/report/status/status_page.h"
#include "launcher/report/status/status_screen.h"
#include "tests/launcher/report/status/jobs_to_see.h"

int main(int argc, char** argv) {
  using namespace hlaunch;  // NOLINT: a program.
  if (argc != 2) return 2;
  JobStatus stopping = RestartedJob();
  stopping.state = JobState::kStopping;
  stopping.explanation =
      "round 2 stops: worker rank 3 on node1 (pid 4711) exited with 7; still running: node0";
  stopping.failed_round = 2;
  Stand(stopping.nodes[0], NodeStanding::kStopping);
  Stand(stopping.nodes[1], NodeStanding::kReady);
  const struct {
    const char* name;
    JobStatus job;
  } jobs[] = {{"restarted", RestartedJob()},
              {"waiting", WaitingJob()},
              {"stopping", stopping},
              {"huge", HugeJob()},
              {"hostile", HostileJob("<script>alert(1)</script>\x1b[31m\xe2\x80\xae \"'&")}};
  for (const auto& [name, job] : jobs) {
    const StatusModel model = ModelOf(job, "--rdzv-endpoint head:29400");
    std::ofstream(absl::StrCat(argv[1], "/", name, ".html"))
        << StatusPage(model, PageKind::kSnapshot);
    for (const std::string& line : StatusScreen(model, {80, 0, false})) std::puts(line.c_str());
    std::puts("");
  }
  return 0;
}
