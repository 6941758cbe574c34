// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

// A stand-in runs in the place of a worker that another process of this node has started. Its
// name in /proc says which process the worker is.

namespace hlaunch {

// The name of a stand-in whose worker is `worker`. Pure.
std::string StandInName(pid_t worker);

// The worker's pid in the name of a stand-in; 0: it is not known yet, or never. Pure.
pid_t WorkerInName(absl::string_view name);

}  // namespace hlaunch
