// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"
#include "launcher/words/endpoint.h"

namespace hlaunch {

// What the person is to run on the other hosts.
struct JoinCommand {
  std::string command;  // One line for a shell, ready to paste.
  std::string hint;     // What the command cannot say; empty if nothing. Holds no secret.
};

// The command that joins a job of kListenAndPrint at `endpoint`: what was typed here, with the
// place, the job id and the token's file added, and without --stdin. Pure.
JoinCommand MakeJoinCommand(const Options& options, const JobSpec& spec, const Endpoint& endpoint);

}  // namespace hlaunch
