// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "agent/binding/plan_binding.h"
#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"

namespace hlaunch {

// What is asked of the plan. Pure. Requires: spec.worker.nproc and spec.places are decided.
BindRequest MakeBindRequest(const Options& options, const JobSpec& spec);

// Puts into `spec` what follows from `plan`: the workers' bindings, warnings and notes, and, where
// somebody asked or is bound, the lines that describe it. Pure.
void UsePlan(const Options& options, const Topology& topology, const std::vector<int>& allowed,
             BindingPlan plan, JobSpec& spec);

// Decides to which CPUs this node's workers are bound, by the topology of this machine or the one
// of --sysroot; what cannot be known is a warning, and nobody is bound. A described machine is good
// for --dry-run: its CPUs are nobody's to run on. Not thread-safe, see LoadTopology.
void BindWorkers(const Options& options, JobSpec& spec);

}  // namespace hlaunch
