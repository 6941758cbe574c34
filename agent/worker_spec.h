// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// What every worker of this node runs. A value, made once by the launcher.
struct WorkerSpec {
  std::string job_id;
  std::vector<std::string> argv;             // argv[0] is a path or is looked up in PATH.
  std::vector<std::string> inherited_env;    // hlaunch's own environment, `NAME=value` each.
  int nproc = 1;                             // Workers on this node.
  std::string role = "default";              // ROLE_NAME
  bool stdin_to_rank0 = false;               // Local rank 0 reads hlaunch's stdin, else /dev/null.
  std::optional<uint64_t> descriptor_limit;  // Soft; unset: hlaunch's own.
  Duration stop_grace = std::chrono::seconds(30);  // From SIGTERM to SIGKILL.
};

}  // namespace hlaunch
