// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <memory>

#include "comm/connection/connection.h"
#include "comm/connection/shm_region.h"
#include "comm/connection/single_copy.h"
#include "proto/base/unique_fd.h"

// A connection between two ranks of one host. The sender makes a region of memory without a name (a
// memfd) and passes it over an abstract unix socket. So nothing is left in a file system when a
// rank is killed, and the end of the socket shows the other rank's death. The socket also carries
// notices and wakes a rank that sleeps.
//
//   region:  flags | what the receiver has taken | 256 slots of 64 bytes | a ring of 128 KiB
//
// A small message is one slot, which costs the reader one cache line. A larger message takes pieces
// of the ring, and one slot for each piece: its bytes are copied twice, by two cores at the same
// time. From kPullMin on the slot may hold an address instead, and the receiver copies the bytes
// once, out of the sender's memory (single_copy.h). The receiver finds out whether the kernel
// permits that by trying, and whether it is faster by measuring.

namespace hlaunch {

std::unique_ptr<OutConnection> MakeShmOutConnection(UniqueFd socket, ShmMapping mapping);

// Tries whether this process may read the memory of `pid`, the sender as the kernel knows it, and
// tells the sender the result.
std::unique_ptr<InConnection> MakeShmInConnection(UniqueFd socket, ShmMapping mapping, pid_t pid,
                                                  const PullProof& proof, SingleCopy single_copy);

}  // namespace hlaunch
