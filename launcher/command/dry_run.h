// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"

// The output of --dry-run and --print-env.

namespace hlaunch {

// Describes what would be run, as lines of text for people or as one JSON object. `hosting` says in
// words whether this node hosts the rendezvous. Pure.
std::string DescribeJob(const Options& options, const JobSpec& spec, const std::string& hosting);

// Returns the environment of the worker with local rank `options.instead.print_env`, as lines that
// a shell can read or as one JSON object. A value that is known only after the nodes have met, such
// as a port, is `?`. Pure.
//
// Requires: the rank is a local rank of this node.
std::string DescribeEnv(const Options& options, const JobSpec& spec, int usable_cores);

// Prints the output of --print-env or --dry-run for this host, whose interfaces and resolver it
// asks. Returns the exit code.
int PrintInsteadOfJob(const Options& options, const JobSpec& spec);

}  // namespace hlaunch
