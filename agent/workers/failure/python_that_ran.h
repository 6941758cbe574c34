// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/workers/worker/worker_spec.h"
#include "proto/contract/ids.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// If the worker's Python could not import something, and nothing else is known of its failure, says
// so in its kind and names that Python in `evidence`: "its Python is /usr/bin/python3". If the
// worker's VIRTUAL_ENV or CONDA_PREFIX names an environment with another Python, "; " and a clause
// about that follows.
void AddPythonThatRan(const WorkerSpec& spec, const Assignment& assignment, WorkerFailure& failure);

}  // namespace hlaunch
