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

using Environment = std::map<std::string, std::string>;

// Where the ranks of a group meet, and which of them this is.
struct InitMethod {
  std::string host;  // Of the store; empty: it is a file.
  uint16_t port = 0;
  bool rank_0_opens = false;  // Rank 0 opens that store.
  std::string path;
  Rank rank = 0;
  int size = 1;
  int local_ranks = 0;  // As LOCAL_WORLD_SIZE says; 0 where it says nothing.
};

// What `url` comes to, as InitProcessGroup reads it. Pure.
//
// Errors:
//   InvalidArgument - what is missing or makes no sense, by name, and the way out.
absl::StatusOr<InitMethod> ParseInitMethod(absl::string_view url, Rank rank, int size,
                                           const Environment& environment);

// Makes a group as torch.distributed.init_process_group does, from
//
//   env://                 MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE; the store is the agent's
//                          (TORCHELASTIC_USE_AGENT_STORE=True), else rank 0 opens it
//   tcp://HOST:PORT        rank 0 opens the store there; `?store=open`: it is open already
//   file:///PATH           a file that all ranks see and that does not exist yet
//
// with `rank` and `size` where they are not -1, else `?rank=R&world_size=N` of the url, else the
// environment. The address that others reach is that of the interface HLAUNCH_SOCKET_IFNAME names
// (a comma-separated list of prefixes, `=eth0` for exactly that, `^docker` for all but those, as
// NCCL_SOCKET_IFNAME), else that of the route to the store.
//
// All keys begin with "hlaunch/comm/" and the group's name, so torch's on the same store are apart.
// A store that rank 0 opened ends with its last group; when that is left, rank 0 waits up to 5 s
// for the others to leave theirs, which may still look for each other. The file goes with the last
// rank.
//
// Errors:
//   InvalidArgument - what is missing or makes no sense, by name.
//   Unavailable, DeadlineExceeded - the store could not be reached; the message says where it was
//       looked for.
//   ResourceExhausted - no descriptors.
absl::StatusOr<std::unique_ptr<ProcessGroup>> InitProcessGroup(absl::string_view url, Rank rank,
                                                               int size, GroupOptions options,
                                                               const Environment& environment);

}  // namespace hlaunch
