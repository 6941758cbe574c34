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

// Where the store of a group is, and which rank this process is. A value.
struct InitMethod {
  std::string host;  // The store's host; empty: the store is a file.
  uint16_t port = 0;
  bool rank_0_opens = false;  // Rank 0 opens that store.
  std::string path;
  bool by_pmi = false;  // PMI-1 will tell all that follows, and where the store is.
  Rank rank = 0;
  int size = 1;
  int local_ranks = 0;  // From LOCAL_WORLD_SIZE; 0 where it is not set.
  std::string secret;   // The bytes that HLAUNCH_COMM_SECRET holds; empty where it is not set.
  Round round = 0;      // From HLAUNCH_ROUND; 0 where it is not set.
};

// Reads `url` and the environment as InitProcessGroup does. Pure.
//
// Errors:
//   InvalidArgument - the message names what is missing or wrong, and what to do.
absl::StatusOr<InitMethod> ParseInitMethod(absl::string_view url, Rank rank, int size,
                                           const Environment& environment);

// Makes a group as torch.distributed.init_process_group does, from
//
//   env://                 MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE; the store is the agent's
//                          (TORCHELASTIC_USE_AGENT_STORE=True), else rank 0 opens it
//   tcp://HOST:PORT        rank 0 opens the store there, unless `?store=open` says that it is open
//   file:///PATH           a file that all ranks see and that does not exist yet
//   pmi://                 PMI_FD, or PMI_PORT and PMI_ID: the server of PMI-1 says which rank
//                          this is, and where rank 0 opens the store (mpiexec of MPICH and of
//                          Intel MPI, hlaunch). Works once in a process, and not if MPI_Init is
//                          called, which talks to the same server. The ranks' secret is made
//                          for this group
//
// `rank` and `size` are used if they are not -1, else `?rank=R&world_size=N` of the url, else the
// environment. Other ranks reach this one at the address of the interface that
// HLAUNCH_SOCKET_IFNAME names (a comma-separated list of prefixes, `=eth0` for exactly that name,
// `^docker` for all but those, as NCCL_SOCKET_IFNAME), else at the address of the route to the
// store.
//
// Ranks prove to each other that they have the same HLAUNCH_COMM_SECRET (64 hexadecimal digits,
// which hlaunch makes for each round and gives only to its workers). If it is not set, every
// process that can read the store is taken for a rank.
//
// All keys begin with "hlaunch/comm/" and the group's name, so they do not collide with torch's in
// the same store. A store that rank 0 opened is closed with rank 0's last group. Rank 0 then waits
// up to 5 s for the other ranks to leave their groups, which may still use the store. The last rank
// that leaves deletes the file.
//
// Errors:
//   InvalidArgument - the message names what is missing or wrong.
//   Unavailable, DeadlineExceeded - the store could not be reached; the message says where.
//   ResourceExhausted - this process is out of descriptors.
absl::StatusOr<std::unique_ptr<ProcessGroup>> InitProcessGroup(absl::string_view url, Rank rank,
                                                               int size, GroupOptions options,
                                                               const Environment& environment);

}  // namespace hlaunch
