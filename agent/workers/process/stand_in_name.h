// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

// A stand-in runs in place of a worker that another process of this node has started. Its name in
// /proc tells which process the worker is.

namespace hlaunch {

// The name of a stand-in whose worker is `worker`. Pure.
std::string StandInName(pid_t worker);

// The worker's pid from the name of a stand-in; 0 if the name does not hold one (yet). Pure.
pid_t WorkerInName(absl::string_view name);

}  // namespace hlaunch
