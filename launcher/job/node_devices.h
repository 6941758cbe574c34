// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"

namespace hlaunch {

// Decides how many workers run on this node and which device each gets: sets `nproc`,
// `device_env` and `on_neuron` of spec.worker and spec.places, and adds what there is to say. All
// contact with the host is in `probes`.
//
// Requires: spec.worker.inherited_env and spec.mode are set.
//
// Errors: as AssignDevices; the message names the option that asked.
absl::Status AssignNodeDevices(const Options& options, const HostProbes& probes, JobSpec& spec);

}  // namespace hlaunch
