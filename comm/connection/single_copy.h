// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

// Large messages between two ranks of a host can be copied once instead of twice: the receiver
// reads the sender's memory by process_vm_readv.

namespace hlaunch {

// When large messages are copied once.
enum class SingleCopy {
  kUnlessSlow,  // Unless the kernel copies far slower than it can, which is measured once in a
                // process: in a sandbox that carries out system calls itself, as gVisor.
  kAlways,      // Wherever the kernel permits it.
  kNever,
};
inline constexpr char kEnvSingleCopy[] = "HLAUNCH_COMM_SINGLE_COPY";  // auto, always, never
// Errors: InvalidArgument - the variable has another value.
absl::StatusOr<SingleCopy> SingleCopyFromEnvironment();

// Whether a receiver is to try it, by `single_copy` and, for kUnlessSlow, by the measurement.
bool ShouldPull(SingleCopy single_copy);

// A number in the sender's memory. The receiver reads it with every message and compares it, so
// that it never takes the memory of another process that got the pid of a dead sender.
struct PullProof {
  uint64_t address = 0;
  uint64_t value = 0;
};
PullProof OwnPullProof();

// Copies `into.size()` bytes at `address` of the process `pid`. False if the kernel refuses it or
// the process is not the one that `proof` is of; `into` may then have been overwritten.
bool PullFrom(pid_t pid, const PullProof& proof, std::span<std::byte> into, uint64_t address);

}  // namespace hlaunch
