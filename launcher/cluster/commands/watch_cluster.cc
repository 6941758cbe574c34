// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/watch_cluster.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_failure.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/commands/cluster_text.h"
#include "launcher/report/status/live_screen.h"
#include "launcher/report/status/time_words.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

// What one look has found.
struct Look {
  std::string text;
  std::string about;  // A change of this text means something new.
  bool last = false;
};

// Looks again and again. If no answer comes, shows the last look below a line that says so. Belongs
// to one thread.
class Watch {
 public:
  explicit Watch(std::function<absl::StatusOr<Look>()> look) : look_(std::move(look)) {}

  int Run() {
    WatchLive([this] { return Frame(); });
    return end_.ok() ? kExitOk : FailToAskCluster(end_);
  }

 private:
  LiveFrame Frame() {
    absl::StatusOr<Look> look = look_();
    const int64_t now = WallMillis();
    if (look.ok()) {
      latest_ = *std::move(look);
      heard_ms_ = now;
      return FrameOf(latest_.text, latest_.about, latest_.last);
    }
    const bool passes =
        absl::IsUnavailable(look.status()) || absl::IsDeadlineExceeded(look.status());
    if (heard_ms_ == 0 || !passes) {
      end_ = look.status();
      return FrameOf("", "", true);
    }
    const std::string head = absl::StrCat("NOTHING HEARD FOR ", SpanWords(now - heard_ms_), ": ",
                                          PrintableLine(look.status().message()), "\n");
    return FrameOf(head + latest_.text, "silent", false);
  }

  static LiveFrame FrameOf(const std::string& text, const std::string& about, bool last) {
    return {[text](const ScreenSize& size) {
              return text.empty() ? std::vector<std::string>() : TextScreen(text, size);
            },
            about, last};
  }

  const std::function<absl::StatusOr<Look>()> look_;
  Look latest_;
  int64_t heard_ms_ = 0;  // When the last answer came; 0: never.
  absl::Status end_;
};

// A line with totals, and the two tables.
absl::StatusOr<Look> LookAtCluster(LocalClient& client, bool all) {
  const absl::StatusOr<HostsAnswer> hosts = AskNodes(client);
  if (!hosts.ok()) return hosts.status();
  const absl::StatusOr<JobsAnswer> jobs = AskJobs(client, {.all = all});
  if (!jobs.ok()) return jobs.status();
  int devices = 0, devices_free = 0;
  for (const HostView& host : hosts->hosts) {
    devices += host.devices;
    devices_free += host.devices_free;
  }
  std::string about;
  for (const JobView& job : jobs->jobs) absl::StrAppend(&about, job.number, ".", job.version, " ");
  for (const HostView& host : hosts->hosts) {
    absl::StrAppend(&about, host.name, host.state, host.devices_free, host.slots_free, " ");
  }
  const int64_t now = WallMillis();
  return Look{absl::StrCat("cluster of ", PrintableLine(hosts->head), ": ", hosts->hosts.size(),
                           " hosts, ", devices_free, " of ", devices, " devices free, ",
                           jobs->jobs.size() + jobs->missing.left_out,
                           all ? " jobs\n\n" : " jobs of yours\n\n", ClusterJobsText(*jobs, now),
                           "\n", HostsText(*hosts, now)),
              about, false};
}

absl::StatusOr<Look> LookAtJob(LocalClient& client, uint64_t number) {
  const absl::StatusOr<JobView> job = AskJob(client, number);
  if (!job.ok()) return job.status();
  return Look{ClusterJobText(*job, WallMillis()), absl::StrCat(job->version),
              job->state == ClusterJobState::kEnded};
}

}  // namespace

int WatchCluster(const std::string& socket, bool all) {
  LocalClient client(socket);
  return Watch([&] { return LookAtCluster(client, all); }).Run();
}

int WatchClusterJob(const std::string& socket, uint64_t job) {
  LocalClient client(socket);
  return Watch([&] { return LookAtJob(client, job); }).Run();
}

}  // namespace hlaunch
