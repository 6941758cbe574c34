// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "rendezvous/rpc/journal.h"

namespace hlaunch {

// Runs `hlaunch-rendezvous` from its command line to its exit code. Call from main before any
// thread exists. `before_step` is passed to the journal, see Journal::Options.
int ServeJobs(int argc, char** argv,
              const std::function<absl::Status(Journal::Step, const std::string&)>& before_step);

}  // namespace hlaunch
