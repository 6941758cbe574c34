// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"

// What --dry-run and --print-env print.

namespace hlaunch {

// What would be run, `hosting` being this node's part in hosting the rendezvous in words: lines of
// text for people, or one JSON object. Pure.
std::string DescribeJob(const Options& options, const JobSpec& spec, const std::string& hosting);

// The environment of the worker with local rank `options.print_env`, as lines that a shell reads,
// or one JSON object. What only the nodes' meeting decides, such as ports, is `?`. Pure.
//
// Requires: the rank is one of this node's.
std::string DescribeEnv(const Options& options, const JobSpec& spec, int usable_cores);

// Either of the two for this host, with what its interfaces and its resolver say; the exit code.
int PrintInsteadOfJob(const Options& options, const JobSpec& spec);

}  // namespace hlaunch
