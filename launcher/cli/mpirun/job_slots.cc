// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/job_slots.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cli/mpirun/job_hosts.h"
#include "launcher/cli/mpirun/take_words.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

constexpr char kOversubscribe[] = "; write --oversubscribe to start more ranks than slots";

// Returns the number in `text`; 0: it has none, or counts by another object than a host.
int NumberIn(const std::string& text) {
  int number = 0;
  return ParseInt(text, 1, INT_MAX, &number) ? number : 0;
}

std::string Counted(int slots) { return absl::StrCat(slots, slots == 1 ? " slot" : " slots"); }

// The job's hosts, or the only host of a step of one task.
JobHosts Around(const Environment& environment) {
  if (!IsOnlyTask(environment)) return HostsOfJobAround(environment);
  JobHosts step;
  step.title = PrintableLine(absl::StrCat("Slurm step ", environment.Get("SLURM_JOB_ID"), ".",
                                          environment.Get("SLURM_STEP_ID")));
  TargetHost host;
  host.name = environment.Get("SLURMD_NODENAME");
  step.hosts = {host};
  step.slots = {1};
  return step;
}

// In a heterogeneous job each part has its own list of hosts, and srun alone starts all of them.
absl::Status CheckParts(const Environment& environment) {
  const int parts = NumberIn(environment.Get("SLURM_HET_SIZE"));
  const bool in_step = !environment.Get("SLURM_STEP_ID").empty();
  if (parts < 2 || in_step || !environment.Get("TORCHELASTIC_RUN_ID").empty()) {
    return absl::OkStatus();
  }
  return InvalidArgumentError(absl::StrCat(
      "Slurm job ", PrintableLine(environment.Get("SLURM_JOB_ID")), " is heterogeneous, of ", parts,
      " parts, and srun starts the ranks on all of ", "their hosts: write srun --het-group=0-",
      parts - 1, " mpirun ..., which runs a rank in each task, or name hosts with --host"));
}

// Ranks by node are numbered host by host if there is one host, or one rank on each.
absl::Status TakeOrder(const JobHosts& job, MpirunLine& line) {
  const int hosts = static_cast<int>(job.hosts.size());
  if (line.by_node.empty() || hosts == 0 || line.per_node == "1") return absl::OkStatus();
  int ranks = NumberIn(line.ranks);
  if (line.ranks.empty()) ranks = std::accumulate(job.slots.begin(), job.slots.end(), 0);
  const bool even = line.maps_by_node && line.per_node.empty() && ranks > 0 && ranks <= hosts;
  if (hosts > 1 && !even) {
    return InvalidArgumentError(absl::StrCat(
        line.by_node, ": ", job.title, " has ", hosts, " hosts, and ranks are numbered host by ",
        "host; write --map-by ppr:N:node for the ranks of each host, or leave it out"));
  }
  if (hosts > 1) line.per_node = "1";
  line.by_node.clear();
  return absl::OkStatus();
}

// Names the hosts with the numbers of `ranks` ranks, of which those beyond the slots are spread
// evenly.
void Spread(const JobHosts& job, int ranks, MpirunLine& line) {
  const int count = static_cast<int>(job.hosts.size());
  const int beyond = ranks - std::accumulate(job.slots.begin(), job.slots.end(), 0);
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(i);
    words.push_back(absl::StrCat(job.hosts[index].name, ":",
                                 job.slots[index] + beyond / count + (i < beyond % count ? 1 : 0)));
  }
  line.hosts = absl::StrJoin(words, ",");
  if (line.shell.empty() && !Says(line, "--launch-agent")) line.shell = job.starter;
}

// Refuses `each` ranks on a host that has fewer slots.
absl::Status CheckEach(const JobHosts& job, int ranks, int each) {
  int left = ranks > 0 ? ranks : INT_MAX;
  for (size_t i = 0; i < job.hosts.size() && left > 0; ++i) {
    const int share = std::min(each, left);
    left -= share;
    if (share <= job.slots[i]) continue;
    return InvalidArgumentError(absl::StrCat(share, " ranks on ", job.hosts[i].name, ": it has ",
                                             Counted(job.slots[i]), " in ", job.title,
                                             kOversubscribe));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status KeepJobSlots(const Environment& environment, MpirunLine& line) {
  if (!line.job_decides) return absl::OkStatus();
  if (absl::Status parts = CheckParts(environment); !parts.ok()) return parts;
  const JobHosts job = Around(environment);
  if (!job.refusal.ok()) return job.refusal;
  if (absl::Status order = TakeOrder(job, line); !order.ok()) return order;
  const int ranks = NumberIn(line.ranks), each = NumberIn(line.per_node);
  if (job.slots.empty()) return absl::OkStatus();
  const bool one_host = job.hosts.size() == 1;
  const bool over = line.oversubscribes.value_or(one_host && line.says_hydras_words);
  if (each > 0 && !over) return CheckEach(job, ranks, each);
  const int slots = std::accumulate(job.slots.begin(), job.slots.end(), 0);
  if (ranks <= slots || each > 0) return absl::OkStatus();
  if (!over) {
    return InvalidArgumentError(absl::StrCat(line.ranks_word, " ", ranks, ": ", job.title, " has ",
                                             Counted(slots), kOversubscribe));
  }
  // A shell of salloc may run on another host than the only one of its job.
  const bool may_be_elsewhere =
      !environment.Get("SLURM_JOB_ID").empty() && environment.Get("SLURMD_NODENAME").empty();
  if (line.per_node.empty() && (!one_host || may_be_elsewhere)) Spread(job, ranks, line);
  return absl::OkStatus();
}

absl::Status KeepSlotsHere(int slots, const MpirunLine& line) {
  if (line.oversubscribes.value_or(line.says_hydras_words) || NumberIn(line.ranks) <= slots) {
    return absl::OkStatus();
  }
  return InvalidArgumentError(absl::StrCat(line.ranks_word, " ", line.ranks, ": ",
                                           PrintableLine(line.hosts), " has ", Counted(slots),
                                           kOversubscribe));
}

}  // namespace hlaunch
