// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"

namespace hlaunch {

// Decides how many workers run on this node and which device each of them gets. Sets `nproc`,
// `starts_others`, `device_env` and `on_neuron` of spec.worker and spec.places, and adds warnings
// and notes. Asks the host only through `probes`.
//
// Requires: spec.worker.inherited_env and spec.mode are set.
//
// Errors: as AssignDevices; InvalidArgument - no worker fits. The message names --nproc-per-node if
// its value was a word.
absl::Status AssignNodeDevices(const Options& options, const HostProbes& probes, JobSpec& spec);

}  // namespace hlaunch
