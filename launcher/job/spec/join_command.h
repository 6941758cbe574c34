// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/text/endpoint.h"

namespace hlaunch {

// What the user must run on the other hosts.
struct JoinCommand {
  std::string command;  // One line for a shell, ready to paste.
  std::string hint;  // What the command cannot say, without the secret. Empty if there is nothing.
};

// Makes the command that joins a job of kListenAndPrint at `endpoint`. It is the command that was
// typed here, with the place, the job id and the files of the token or certificates added, and
// without options that concern this node alone, such as --stdin. Pure.
JoinCommand MakeJoinCommand(const Options& options, const JobSpec& spec, const Endpoint& endpoint);

}  // namespace hlaunch
