// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Slurm. Only the variables of a step count. In a batch script and in a shell of salloc the job's
// variables are set as well, SLURM_PROCID among them, but nothing runs on the other nodes.

#include <algorithm>
#include <climits>
#include <fstream>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/environment/scheduler/hostlist.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

// The ids from here on belong to batch scripts, salloc's shell and so on.
constexpr uint64_t kFirstSpecialStep = 0xfffffff0;
constexpr int kDefaultKillWait = 30;
constexpr int kMaxKillWait = 65535;

// Returns the first of two variables that Slurm has for the same thing, or if that is empty, the
// second.
std::string Either(const Environment& environment, const char* name, const char* other) {
  const std::string value = environment.Get(name);
  return value.empty() ? environment.Get(other) : value;
}

struct Step {
  std::string job_text, name;  // "17" and "17.0"
  uint64_t job = 0, step = 0;
};

// Returns the step of which this process is a task; unset: none.
std::optional<Step> ReadStep(const Environment& environment) {
  Step step;
  step.job_text = Either(environment, "SLURM_JOB_ID", "SLURM_JOBID");
  const std::string step_text = Either(environment, "SLURM_STEP_ID", "SLURM_STEPID");
  if (!absl::SimpleAtoi(step.job_text, &step.job) || !absl::SimpleAtoi(step_text, &step.step) ||
      step.step >= kFirstSpecialStep || environment.Get("SLURM_PROCID").empty()) {
    return std::nullopt;
  }
  step.name = absl::StrCat(step.job, ".", step.step);
  return step;
}

// Returns the variable that somebody has taken from a task of a step of several; else empty.
std::string MissingOfStep(const Environment& environment) {
  if (IntFrom(environment.Get("SLURM_STEP_NUM_TASKS"), 2, INT_MAX) < 0) return "";
  if (Either(environment, "SLURM_STEP_ID", "SLURM_STEPID").empty()) return "SLURM_STEP_ID";
  return environment.Get("SLURM_PROCID").empty() ? "SLURM_PROCID" : "";
}

// Returns true if a batch script's shell has started this process and waits for it: Slurm signals
// that shell alone. After a script's last `exec` this process is the shell's own and gets the
// signals.
bool IsBelowBatchScript(const Surroundings& surroundings) {
  const int shell = IntFrom(surroundings.environment.Get("SLURM_TASK_PID"), 1, 1 << 30);
  const auto& ancestors = surroundings.ancestors;
  const auto found = std::find(ancestors.begin(), ancestors.end(), shell);
  return found != ancestors.end() && found != ancestors.begin();
}

int PartsOfJob(const Environment& environment) {
  return IntFrom(environment.Get("SLURM_HET_SIZE"), 2, kMaxNodes);
}

// Returns the nodes of each part of a heterogeneous job, part by part. Empty: not each is known.
std::vector<std::string> NodesOfParts(const Environment& environment, int parts) {
  std::vector<std::string> all;
  for (int i = 0; i < parts; ++i) {
    const Variable list = FirstSet(environment, absl::StrCat("SLURM_JOB_NODELIST_HET_GROUP_", i,
                                                             "|SLURM_JOB_NODELIST_PACK_GROUP_", i));
    const auto hosts = ExpandHostlist(list.value, kMaxNodes);
    if (!hosts.ok() || hosts->empty()) return {};
    all.insert(all.end(), hosts->begin(), hosts->end());
  }
  return all;
}

// The place of a process in a job and in no step of it: it runs alone, where it was started.
ClusterPlace OutsideOfSteps(const Surroundings& surroundings, const std::string& job, bool told) {
  const Environment& environment = surroundings.environment;
  const size_t of_parts = NodesOfParts(environment, PartsOfJob(environment)).size();
  const std::string nodes = of_parts > 0
                                ? absl::StrCat(of_parts)
                                : Either(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES");
  ClusterPlace place = NoPlace(
      absl::StrCat("Slurm job ", PrintableLine(job),
                   ", but no step of it, which srun starts (there is no SLURM_STEP_ID): write ",
                   "srun --ntasks-per-node=1 hlaunch ..."));
  if (!told && IntFrom(nodes, 2, kMaxNodes) > 0) {
    place.warnings.push_back(absl::StrCat(
        "this runs on one node of the ", nodes, " of Slurm job ", PrintableLine(job),
        ", for srun did not start it: write srun --ntasks-per-node=1 hlaunch ... for all of them, "
        "or --nnodes 1 if one is what you want"));
  }
  if (IsBelowBatchScript(surroundings)) {
    place.cautions.push_back(
        "scancel and the time limit signal the batch script and not hlaunch, so workers cannot "
        "save what they have: write srun --ntasks-per-node=1 hlaunch ..., or exec hlaunch ...");
  }
  if (!StartsAllocation(surroundings)) return place;
  ClusterPlace start = AllocationPlace(surroundings);
  place.cluster = start.cluster;
  place.values = std::move(start.values);
  place.start_reason = std::move(start.reason);
  return place;
}

// Returns true if the variables are those of a step to which this process does not belong: they
// were copied, or left behind by a terminal multiplexer of another node. One of two signs proves
// that it belongs: the task among its ancestors, which containers hide, or the node's name, which a
// site may choose differently from the host's.
bool IsStray(const Surroundings& surroundings, const std::string& node) {
  const int task = IntFrom(surroundings.environment.Get("SLURM_TASK_PID"), 1, 1 << 30);
  const auto& ancestors = surroundings.ancestors;
  if (std::find(ancestors.begin(), ancestors.end(), task) != ancestors.end()) return false;
  // A container hides the task, and may have a host name of its own. Then slurmd's name of the node
  // is the only sign left.
  if (surroundings.own_pids && !node.empty() &&
      surroundings.environment.Get("SLURMD_NODENAME") == node) {
    return false;
  }
  const auto host_is = [&surroundings](const std::string& name) {
    return !name.empty() && (surroundings.host == name ||
                             absl::StartsWith(surroundings.host, absl::StrCat(name, ".")) ||
                             absl::StartsWith(name, absl::StrCat(surroundings.host, ".")));
  };
  return !host_is(node);
}

struct Nodes {
  std::vector<std::string> hosts;
  int rank = 0;
  int count() const { return static_cast<int>(hosts.size()); }
};

absl::Status Wrong(const Environment& environment, const char* name, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " '", PrintableLine(environment.Get(name).substr(0, 80)), "': ", why));
}

// Slurm numbers the nodes of a heterogeneous step part by part and sorts their list by name.
// Returns `hosts`, that list, in the order of the numbers; empty: the order cannot be told.
std::vector<std::string> InOrderOfParts(const Environment& environment, int parts,
                                        const std::vector<std::string>& hosts, int rank) {
  std::vector<std::string> ordered = NodesOfParts(environment, parts);
  const auto is_other = [&hosts](const std::string& host) {
    return std::find(hosts.begin(), hosts.end(), host) == hosts.end();
  };
  ordered.erase(std::remove_if(ordered.begin(), ordered.end(), is_other), ordered.end());
  const std::string own = environment.Get("SLURMD_NODENAME");
  const bool known = ordered.size() == hosts.size() &&
                     std::is_permutation(ordered.begin(), ordered.end(), hosts.begin()) &&
                     (own.empty() || ordered[static_cast<size_t>(rank)] == own);
  return known ? ordered : std::vector<std::string>();
}

// Reads the step's nodes.
//
// Errors:
//   InvalidArgument - names the variable and says what is wrong with it.
absl::StatusOr<Nodes> ReadNodes(const Environment& environment) {
  const int count = IntFrom(environment.Get("SLURM_STEP_NUM_NODES"), 1, kMaxNodes);
  if (count < 0) {
    return Wrong(environment, "SLURM_STEP_NUM_NODES", absl::StrCat("expected 1 to ", kMaxNodes));
  }
  Nodes nodes;
  nodes.rank = IntFrom(environment.Get("SLURM_NODEID"), 0, count - 1);
  if (nodes.rank < 0)
    return Wrong(environment, "SLURM_NODEID", absl::StrCat("expected 0 to ", count - 1));
  const auto hosts = ExpandHostlist(environment.Get("SLURM_STEP_NODELIST"), kMaxNodes);
  if (!hosts.ok()) return Wrong(environment, "SLURM_STEP_NODELIST", hosts.status().message());
  nodes.hosts = *hosts;
  if (nodes.count() != count) {
    return Wrong(
        environment, "SLURM_STEP_NODELIST",
        absl::StrCat("names ", nodes.count(), " hosts and SLURM_STEP_NUM_NODES says ", count));
  }
  if (const int parts = PartsOfJob(environment); parts > 0) {
    nodes.hosts = InOrderOfParts(environment, parts, *hosts, nodes.rank);
    if (nodes.hosts.empty()) {
      return Wrong(environment, "SLURM_STEP_NODELIST",
                   "the step is heterogeneous (SLURM_HET_SIZE), and SLURM_JOB_NODELIST_HET_GROUP_0 "
                   "and on do not tell the numbers of its nodes");
    }
  }
  return nodes;
}

// Returns the options that give each of the fewer tasks as much as `tasks` of them had.
std::string PerTask(const Environment& environment, int tasks) {
  std::string text;
  const int gpus = IntFrom(environment.Get("SLURM_GPUS_PER_TASK"), 1, kMaxNodes);
  const int cpus = IntFrom(environment.Get("SLURM_CPUS_PER_TASK"), 1, kMaxNodes);
  if (gpus > 0) absl::StrAppend(&text, " --gpus-per-task=", gpus * tasks);
  if (cpus > 0) absl::StrAppend(&text, " --cpus-per-task=", cpus * tasks);
  return text;
}

// Reads how many tasks of the step each node has.
//
// Errors:
//   InvalidArgument - names the variable and says what is wrong with it.
absl::StatusOr<std::vector<int>> ReadTaskCounts(const Environment& environment,
                                                const Nodes& nodes) {
  const char* name = "SLURM_STEP_TASKS_PER_NODE";
  const std::string text = environment.Get(name);
  const auto counts = ExpandCounts(text, kMaxNodes);
  if (!counts.ok()) return Wrong(environment, name, counts.status().message());
  if (static_cast<int>(counts->size()) != nodes.count()) {
    return Wrong(environment, name,
                 absl::StrCat("counts ", counts->size(), " nodes and SLURM_STEP_NUM_NODES says ",
                              nodes.count()));
  }
  return counts;
}

std::string OneTaskOnEachNode(const Environment& environment, const Nodes& nodes, int most) {
  return absl::StrCat("srun -N", nodes.count(), " -n", nodes.count(), " --ntasks-per-node=1",
                      PerTask(environment, most), " hlaunch --nproc-per-node ", most, " ...");
}

// Returns true if Slurm numbers its tasks as hlaunch numbers its ranks: all of one node, then those
// of the next.
bool IsNumberedByNode(const Environment& environment, const NodeTasks& tasks) {
  const std::vector<std::string> numbers =
      absl::StrSplit(environment.Get("SLURM_GTIDS"), ',', absl::SkipEmpty());
  if (tasks.rank != tasks.first_rank + tasks.local) return false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != absl::StrCat(tasks.first_rank + static_cast<int>(i))) return false;
  }
  return true;
}

// Reads this node's tasks of a step that has several tasks on some node. This node may have one.
//
// Errors:
//   InvalidArgument - the tasks cannot be told, or their numbers would not be their ranks.
absl::StatusOr<NodeTasks> ReadTasks(const Environment& environment, const Step& step,
                                    const Nodes& nodes, const std::vector<int>& counts) {
  const auto node = static_cast<size_t>(nodes.rank);
  NodeTasks tasks;
  tasks.owner = absl::StrCat("Slurm step ", step.name);
  tasks.name = absl::StrCat("slurm-", environment.Get("SLURM_CLUSTER_NAME").substr(0, 32), "-",
                            step.name, "-", nodes.rank);
  tasks.count = counts[node];
  tasks.first_rank = std::accumulate(counts.begin(), counts.begin() + nodes.rank, 0);
  tasks.local = IntFrom(environment.Get("SLURM_LOCALID"), 0, tasks.count - 1);
  tasks.rank = IntFrom(environment.Get("SLURM_PROCID"), 0, 1 << 30);
  tasks.instead =
      OneTaskOnEachNode(environment, nodes, *std::max_element(counts.begin(), counts.end()));
  if (tasks.local < 0) {
    return Wrong(environment, "SLURM_LOCALID", absl::StrCat("expected 0 to ", tasks.count - 1));
  }
  if (IsNumberedByNode(environment, tasks)) return tasks;
  return absl::InvalidArgumentError(absl::StrCat(
      "Slurm does not number the tasks of step ", step.name,
      " node by node (SLURM_GTIDS=", PrintableLine(environment.Get("SLURM_GTIDS")), " on its node ",
      nodes.rank, "), as ranks are: add --distribution=block, or write ", tasks.instead));
}

// Returns the first port that `srun --resv-ports` has reserved for the step, as in
// "12000-12003,12010"; -1: none.
int FirstReservedPort(const Environment& environment) {
  const std::string ports = environment.Get("SLURM_STEP_RESV_PORTS");
  return IntFrom(ports.substr(0, ports.find_first_of(",-")), 1, 65535);
}

// Returns the path of the configuration that this node's Slurm uses; empty if it cannot be read.
std::string ConfigurationFile(const Surroundings& surroundings, std::string& content) {
  std::vector<std::string> paths = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                    "/etc/slurm-llnl/slurm.conf"};
  if (const std::string named = surroundings.environment.Get("SLURM_CONF"); !named.empty()) {
    paths = {named};
  }
  for (const std::string& path : paths) {
    std::ifstream file(surroundings.root + path);
    content.resize(1 << 20);
    file.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<size_t>(file.gcount()));
    if (!content.empty()) return path;
  }
  return "";
}

// The time from SIGTERM to SIGKILL at the time limit, on preemption, requeue and scancel.
struct KillWait {
  int seconds = kDefaultKillWait;
  std::string source = "Slurm's own default, for no slurm.conf can be read here";
};

KillWait FindKillWait(const Surroundings& surroundings) {
  KillWait wait;
  std::string content;
  const std::string path = ConfigurationFile(surroundings, content);
  if (path.empty()) return wait;
  wait.source = absl::StrCat(path, " (KillWait)");
  for (const absl::string_view line : absl::StrSplit(content, '\n')) {
    const absl::string_view text = line.substr(0, line.find('#'));
    for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\r"))) {
      if (!absl::StartsWithIgnoreCase(word, "killwait=")) continue;
      const int seconds = IntFrom(word.substr(sizeof "killwait=" - 1), 0, kMaxKillWait);
      if (seconds >= 0) wait.seconds = seconds;
    }
  }
  return wait;
}

// Returns the workers' part of KillWait. hlaunch needs the rest to end what is left and to report.
int Grace(int kill_wait) { return kill_wait - std::clamp(kill_wait / 5, 1, 5); }

// Each of several tasks has its own part of the node, and one worker.
void AddTasks(NodeTasks tasks, ClusterPlace& place) {
  const char* variable = "SLURM_STEP_TASKS_PER_NODE";
  place.Add("--nproc-per-node", absl::StrCat(tasks.count), variable,
            "a worker for each task on this node, and in it");
  place.Add("--devices", "none", variable, "each task has its own");
  place.Add("--bind", "none", variable, "each task has its own CPUs");
  place.told_elsewhere = tasks.local > 0;
  place.tasks = std::move(tasks);
}

void AddWorkers(const Environment& environment, ClusterPlace& place) {
  const NamedDevices visible = CountNamedDevices(environment);
  const int on_node = IntFrom(environment.Get("SLURM_GPUS_ON_NODE"), 1, kMaxNodes);
  if (visible.count > 0) {
    place.Add("--nproc-per-node", absl::StrCat(visible.count), visible.source,
              "a worker for each device that this task may use");
  } else if (on_node > 0 && environment.Get("CUDA_VISIBLE_DEVICES").empty()) {
    place.Add("--nproc-per-node", absl::StrCat(on_node), "SLURM_GPUS_ON_NODE",
              "a worker for each GPU of the step on this node");
  } else {
    place.Add("--nproc-per-node", "1", "SLURM_STEP_TASKS_PER_NODE",
              "one task and no GPUs: one worker, with all CPUs of the task (--nproc-per-node cpu: "
              "one for each)");
  }
}

// Adds facts that people ask for and no option needs.
void AddFacts(const Surroundings& surroundings, const KillWait& wait, ClusterPlace& place) {
  const Environment& environment = surroundings.environment;
  const auto tell = [&](const char* name, const char* variable, const char* meaning) {
    const std::string value = environment.Get(variable);
    if (!value.empty()) place.Add(name, value, variable, meaning);
  };
  tell("CPUs", "SLURM_CPUS_PER_TASK", "of this task");
  tell("CPUs", "SLURM_CPUS_ON_NODE", "of the step on this node");
  tell("restarts", "SLURM_RESTART_COUNT", "the job was requeued so many times");
  tell("array task", "SLURM_ARRAY_TASK_ID", "which of the array's; its job id is its own");
  int64_t end = 0;
  if (absl::SimpleAtoi(environment.Get("SLURM_JOB_END_TIME"), &end)) {
    place.Add(
        "time limit",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(end), absl::UTCTimeZone()),
        "SLURM_JOB_END_TIME", "then SIGCONT and SIGTERM, which workers get at once");
  }
  place.Add("from SIGTERM to SIGKILL", absl::StrCat(wait.seconds, " s"), wait.source,
            "at the time limit, on requeue and scancel; preemption has its own GraceTime");
}

}  // namespace

std::optional<uint16_t> PortOfStep(absl::string_view job_id) {
  const std::vector<absl::string_view> numbers = absl::StrSplit(job_id, '.');
  uint64_t job = 0, step = 0;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &job) ||
      !absl::SimpleAtoi(numbers[1], &step)) {
    return std::nullopt;
  }
  return MeetingPort(job, step);
}

// Returns whether srun --pty started this in a task of several of its node, and not below a shell
// in the first one. The shells of the other tasks read no command.
bool IsTaskUnderPty(const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  const auto counts = ExpandCounts(environment.Get("SLURM_STEP_TASKS_PER_NODE"), kMaxNodes);
  if (!counts.ok() || counts->empty() || counts->front() < 2) return false;
  const auto& ancestors = surroundings.ancestors;
  const int task = IntFrom(environment.Get("SLURM_TASK_PID"), 1, 1 << 30);
  return environment.Get("SLURM_PROCID") != "0" ||
         (!ancestors.empty() && ancestors.front() == task);
}

ClusterPlace FindSlurm(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const std::string job = Either(environment, "SLURM_JOB_ID", "SLURM_JOBID");
  if (job.empty()) return {};
  const std::optional<Step> step = ReadStep(environment);
  if (!step && !told) {
    if (const std::string missing = MissingOfStep(environment); !missing.empty()) {
      return RefusedPlace(
          "slurm", absl::StrCat("this runs in a step of Slurm with several tasks "
                                "(SLURM_STEP_NUM_TASKS), and ",
                                missing, " is not set, so each task ",
                                "would start the whole job: leave that variable set, or give ",
                                "--nnodes 1 for this node alone"));
    }
  }
  if (!step) return OutsideOfSteps(surroundings, job, told);
  const int step_nodes = IntFrom(environment.Get("SLURM_STEP_NUM_NODES"), 1, kMaxNodes);
  if (!told && IsInShellOfSrun(environment)) {
    const std::string reason =
        absl::StrCat("Slurm step ", step->name, " is a shell (SLURM_PTY_PORT: srun --pty)");
    if (step_nodes <= 1 && IsTaskUnderPty(surroundings)) {
      return RefusedTask(
          "slurm",
          absl::StrCat("Slurm step ", step->name, " has several tasks under srun --pty, which ",
                       "would each run by itself: leave --pty out, or write srun -N1 -n1 --pty ",
                       "hlaunch --nproc-per-node ", environment.Get("SLURM_STEP_NUM_TASKS"),
                       " ..."),
          environment.Get("SLURM_PROCID"));
    }
    if (step_nodes <= 1) {
      return NoPlace(
          absl::StrCat(reason, "; --cluster slurm takes it for a job's part all the same"));
    }
    return RefusedPlace("slurm",
                        absl::StrCat(reason, " on ", step_nodes, " nodes: give --nnodes 1 ",
                                     "for this node alone, or --cluster slurm where ",
                                     "hlaunch is started on all of them"));
  }
  const std::string way_out = absl::StrCat(
      "; give --nnodes, --node-rank and --rdzv-endpoint, or --cluster none for one node");
  const absl::StatusOr<Nodes> nodes = ReadNodes(environment);
  const std::string node = nodes.ok() ? nodes->hosts[static_cast<size_t>(nodes->rank)] : "";
  if (!told && IsStray(surroundings, node)) {
    const std::string reason = absl::StrCat(
        "variables of Slurm step ", step->name, ", but this process is not under its task (pid ",
        PrintableLine(environment.Get("SLURM_TASK_PID")), ") and this host, ", surroundings.host,
        ", is not its node", node.empty() ? "" : " ", node);
    if (step_nodes <= 1) return NoPlace(reason);
    return RefusedPlace("slurm",
                        absl::StrCat(reason, ": give --cluster slurm if it is a part of the ",
                                     "step all the same, or --nnodes 1 for this node ", "alone"));
  }
  if (!nodes.ok()) {
    return RefusedPlace("slurm", absl::StrCat(nodes.status().message(), way_out));
  }
  const absl::StatusOr<std::vector<int>> counts = ReadTaskCounts(environment, *nodes);
  const bool several = counts.ok() && *std::max_element(counts->begin(), counts->end()) > 1;
  const absl::StatusOr<NodeTasks> tasks =
      several ? ReadTasks(environment, *step, *nodes, *counts) : NodeTasks();
  if (!counts.ok() || !tasks.ok()) {
    const absl::Status& why = counts.ok() ? tasks.status() : counts.status();
    return RefusedTask("slurm", std::string(why.message()), environment.Get("SLURM_PROCID"));
  }
  ClusterPlace place;
  place.cluster = "slurm";
  place.reason = absl::StrCat("a task of Slurm step ", step->name, " (SLURM_STEP_ID)");
  place.started_once = true;  // Slurm starts no task of a step again.
  place.Add("--nnodes", absl::StrCat(nodes->count()), "SLURM_STEP_NUM_NODES", "nodes of the step");
  place.Add("--node-rank", absl::StrCat(nodes->rank), "SLURM_NODEID",
            absl::StrCat("this is ", node, ", in the order of SLURM_STEP_NODELIST"));
  const int reserved = FirstReservedPort(environment);
  place.Add("--rdzv-endpoint",
            absl::StrCat(nodes->hosts[0], ":",
                         reserved > 0 ? reserved : MeetingPort(step->job, step->step)),
            "SLURM_STEP_NODELIST",
            reserved > 0 ? "its first host; the first port of SLURM_STEP_RESV_PORTS"
                         : "its first host; port 12000 + (16 * job + step) mod 16381");
  place.Add("--rdzv-id", step->name, "SLURM_JOB_ID", "job and step");
  several ? AddTasks(*tasks, place) : AddWorkers(environment, place);
  const KillWait wait = FindKillWait(surroundings);
  place.Add("--shutdown-timeout", absl::StrCat(std::max(Grace(wait.seconds), 0)), wait.source,
            "seconds that workers have after SIGTERM, before Slurm kills all");
  AddFacts(surroundings, wait, place);
  return place;
}

bool IsInShellOfSrun(const Environment& environment) {
  return !environment.Get("SLURM_PTY_PORT").empty();
}

bool IsOneOfSeveralTasks(const Environment& environment) {
  return IntFrom(environment.Get("SLURM_STEP_NUM_TASKS"), 2, INT_MAX) > 0 &&
         !IsInShellOfSrun(environment) && environment.Get("TORCHELASTIC_RUN_ID").empty();
}

absl::Status CheckFirstTask(const Environment& environment) {
  const int task = IntFrom(environment.Get("SLURM_PROCID"), 1, INT_MAX);
  if (task < 0 || !IsOneOfSeveralTasks(environment)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "this is task ", task, " of a Slurm step of ", environment.Get("SLURM_STEP_NUM_TASKS"),
      " tasks, and task 0 starts the job on the hosts that are named: start the command once ",
      "(srun -n 1, or no srun), or leave the hosts out for one job of all tasks"));
}

}  // namespace hlaunch
