// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

// What follows for a job whose own agents keep its record when a node ends that hosts its
// rendezvous. Pure.

namespace hlaunch {

// Whether the job ends with its host, which ends with `exit_code`: somebody has stopped that, or
// the job's time is up. Else the others go on without it.
bool EndsWithHost(int exit_code);

}  // namespace hlaunch
