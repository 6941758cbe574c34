// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/binding/binding_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "agent/machine/devices/visible_devices.h"

namespace hlaunch {
namespace {

constexpr size_t kMostSigns = 64;  // The most signs in one picture.

// The cores of each node of each socket, as the numbers of their CPUs.
using Node = std::vector<std::vector<int>>;
using Machine = std::map<int, std::map<int, Node>>;

Machine Arrange(const Topology& topology) {
  std::map<std::tuple<int, int, int>, std::vector<int>> cores;
  for (const Cpu& cpu : topology.cpus) {
    cores[{cpu.socket, cpu.node, cpu.core}].push_back(cpu.id);
  }
  Machine machine;
  for (auto& [place, cpus] : cores) {
    machine[std::get<0>(place)][std::get<1>(place)].push_back(std::move(cpus));
  }
  return machine;
}

size_t NumCores(const Machine& machine) {
  size_t count = 0;
  for (const auto& socket : machine) {
    for (const auto& node : socket.second) count += node.second.size();
  }
  return count;
}

// The sign for the cores [begin, end) of `node`.
char Sign(const Node& node, size_t begin, size_t end, const std::set<int>& allowed,
          const std::set<int>& cpus) {
  size_t usable = 0;
  size_t bound = 0;
  for (size_t core = begin; core < std::min(end, node.size()); ++core) {
    for (const int cpu : node[core]) {
      usable += allowed.contains(cpu) ? 1 : 0;
      bound += cpus.contains(cpu) ? 1 : 0;
    }
  }
  if (usable == 0) return '-';
  if (bound == 0) return '.';
  return bound == usable ? '#' : '+';
}

std::string Some(size_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string DescribeMachine(const Topology& topology) {
  const Machine machine = Arrange(topology);
  std::set<int> nodes;
  for (const Cpu& cpu : topology.cpus) nodes.insert(cpu.node);
  return absl::StrCat(Some(machine.size(), "socket"), ", ", Some(nodes.size(), "NUMA node"), ", ",
                      Some(NumCores(machine), "core"), ", ", Some(topology.cpus.size(), "CPU"));
}

std::string Line(const Topology& topology, const std::vector<int>& allowed, const BindingPlan& plan,
                 size_t local_rank) {
  const WorkerBinding& worker = plan.workers[local_rank];
  const auto sharers =
      std::count_if(plan.workers.begin(), plan.workers.end(),
                    [&worker](const WorkerBinding& other) { return other.cpus == worker.cpus; });
  return absl::StrCat(
      "local rank ", local_rank, " ", DrawCpus(topology, allowed, worker.cpus), " CPUs ",
      FormatIds(worker.cpus), ", ", Some(static_cast<size_t>(worker.cores), "core"),
      sharers > 1 ? absl::StrCat(" each for ", sharers, " workers") : "",
      worker.memory_node < 0 ? "" : absl::StrCat(", memory of NUMA node ", worker.memory_node),
      worker.why.empty() ? "" : absl::StrCat(": ", worker.why));
}

}  // namespace

std::string DrawCpus(const Topology& topology, const std::vector<int>& allowed,
                     const std::vector<int>& cpus) {
  const Machine machine = Arrange(topology);
  const size_t step = (NumCores(machine) + kMostSigns - 1) / kMostSigns;
  const std::set<int> usable(allowed.begin(), allowed.end());
  const std::set<int> bound(cpus.begin(), cpus.end());
  std::string text;
  for (const auto& socket : machine) {
    text.push_back('[');
    for (const auto& [number, node] : socket.second) {
      if (text.back() != '[') text.push_back('|');
      for (size_t core = 0; core < node.size(); core += step) {
        text.push_back(Sign(node, core, core + step, usable, bound));
      }
    }
    text.push_back(']');
  }
  return text;
}

std::vector<std::string> DescribeBinding(const Topology& topology, const std::vector<int>& allowed,
                                         const BindingPlan& plan) {
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(plan.why, " (", DescribeMachine(topology), ")"));
  for (size_t i = 0; i < plan.workers.size(); ++i) {
    lines.push_back(Line(topology, allowed, plan, i));
  }
  if (plan.workers.empty()) {
    lines.push_back(absl::StrCat("all local ranks ", DrawCpus(topology, allowed, allowed), " CPUs ",
                                 FormatIds(allowed)));
  }
  return lines;
}

}  // namespace hlaunch
