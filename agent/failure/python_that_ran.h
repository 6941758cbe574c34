// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/worker/worker_spec.h"
#include "proto/contract/ids.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// Begins the evidence of a worker whose Python could not import something. After it stands the path
// of that Python. If the worker's VIRTUAL_ENV or CONDA_PREFIX names an environment with another
// Python, "; " and a clause about that follows.
inline constexpr char kItsPython[] = "its Python is ";

// Sets `failure.evidence` to these words if they tell why the worker failed and nothing else is
// known.
void AddPythonThatRan(const WorkerSpec& spec, const Assignment& assignment, WorkerFailure& failure);

}  // namespace hlaunch
