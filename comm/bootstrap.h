// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/process_group.h"

namespace hlaunch {

// Makes a group as torch.distributed.init_process_group does, from
//
//   env://                 MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE; the store is that of the
//   agent
//                          (TORCHELASTIC_USE_AGENT_STORE=True), else rank 0 opens it
//   tcp://HOST:PORT        rank 0 opens the store there
//   file:///PATH           a file that all ranks see
//
// with `rank` and `size` where they are not -1, else `?rank=R&world_size=N` of the url, else the
// environment. The address that others reach is that of the interface HLAUNCH_SOCKET_IFNAME names
// (a comma-separated list of prefixes, `=eth0` for exactly that, `^docker` for all but those, as
// NCCL_SOCKET_IFNAME), else that of the route to the store.
//
// Errors:
//   InvalidArgument - what is missing or makes no sense, by name.
//   Unavailable, DeadlineExceeded - the store could not be reached; the message says where it was
//       looked for.
absl::StatusOr<std::unique_ptr<ProcessGroup>> InitProcessGroup(
    absl::string_view url, Rank rank, int size, GroupOptions options,
    const std::map<std::string, std::string>& environment);

}  // namespace hlaunch
