// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "agent/machine/binding/plan_binding.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"

namespace hlaunch {

// Makes the request for PlanBinding. Pure. Requires: spec.worker.nproc and spec.places are decided.
BindRequest MakeBindRequest(const Options& options, const JobSpec& spec);

// Puts into `spec` what follows from `plan`: the workers' bindings, warnings and notes. If the user
// asked or a worker is bound, adds the lines that describe the binding. Pure.
void UsePlan(const Options& options, const Topology& topology, const std::vector<int>& allowed,
             BindingPlan plan, JobSpec& spec);

// Decides to which CPUs this node's workers are bound, by the topology of this machine or of the
// machine in --sysroot. If the topology cannot be read, adds a warning and binds no worker. A
// machine in --sysroot serves --dry-run and --print-env only: no worker can run on its CPUs. Not
// thread-safe, see LoadTopology.
void BindWorkers(const Options& options, JobSpec& spec);

}  // namespace hlaunch
