// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/node_binding.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/machine/binding/binding_text.h"
#include "agent/node_facts.h"

namespace hlaunch {
namespace {

bool IsAsked(const Options& options) {
  return options.binding.mode.has_value() || options.binding.numa.has_value() ||
         options.binding.report;
}

std::vector<int> AllCpus(const Topology& topology) {
  std::vector<int> cpus;
  for (const Cpu& cpu : topology.cpus) cpus.push_back(cpu.id);
  return cpus;
}

}  // namespace

BindRequest MakeBindRequest(const Options& options, const JobSpec& spec) {
  BindRequest request;
  request.workers = spec.worker.nproc;
  request.mode = options.binding.numa.value_or(options.binding.mode.value_or(BindMode::kAuto));
  if (!options.binding.numa) request.cores_each = options.binding.cores;
  if (!options.binding.numa) request.slots = options.binding.slots;
  request.places = spec.places;
  // Only torchrun's rules (--numa-binding) reserve cores for devices that no worker uses.
  if (!options.binding.numa) request.places.resize(static_cast<size_t>(request.workers));
  return request;
}

void UsePlan(const Options& options, const Topology& topology, const std::vector<int>& allowed,
             BindingPlan plan, JobSpec& spec) {
  if (!plan.warning.empty()) spec.warnings.push_back(plan.warning);
  spec.notes.push_back(plan.why);
  if (IsAsked(options) || !plan.workers.empty()) {
    spec.binding = plan.why;
    spec.binding_lines = DescribeBinding(topology, allowed, plan);
  }
  spec.worker.bindings = std::move(plan.workers);
}

void BindWorkers(const Options& options, JobSpec& spec) {
  const BindRequest request = MakeBindRequest(options, spec);
  if (!NeedsTopology(request) && !options.binding.report) {
    UsePlan(options, {}, {}, PlanBinding({}, {}, request), spec);
    return;
  }
  const absl::StatusOr<Topology> topology = LoadTopology({options.sysroot, "", ""});
  if (!topology.ok()) {
    spec.warnings.push_back(absl::StrCat("workers are not bound: ", topology.status().message()));
    return;
  }
  const std::vector<int> allowed = topology->is_this_machine ? AllowedCpus() : AllCpus(*topology);
  BindingPlan plan = PlanBinding(*topology, allowed, request);
  const bool is_real = !options.instead.dry_run && !options.instead.print_env;
  if (!topology->is_this_machine && is_real && !plan.workers.empty()) {
    spec.warnings.push_back(
        "workers are not bound: the CPUs that are described are not this machine's");
    return;
  }
  UsePlan(options, *topology, allowed, std::move(plan), spec);
}

}  // namespace hlaunch
