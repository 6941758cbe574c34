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
  kUnlessSlow,  // Unless the kernel's copy is far slower than memcpy, as in gVisor, a sandbox that
                // carries out system calls itself. Each process measures it once.
  kAlways,      // Wherever the kernel permits it.
  kNever,
};
inline constexpr char kEnvSingleCopy[] = "HLAUNCH_COMM_SINGLE_COPY";  // auto, always, never
// Errors: InvalidArgument - the variable has another value.
absl::StatusOr<SingleCopy> SingleCopyFromEnvironment();

// Returns whether a receiver should try it: by `single_copy` and, with kUnlessSlow, by the
// measurement.
bool ShouldPull(SingleCopy single_copy);

// A number in the sender's memory. The receiver reads it with every message and compares it, so
// that it never takes the memory of another process that got the pid of a dead sender.
struct PullProof {
  uint64_t address = 0;
  uint64_t value = 0;
};
PullProof OwnPullProof();

// Copies `into.size()` bytes from `address` in the process `pid`. Returns false if the kernel
// refuses it or the process is not the one that made `proof`; `into` may be overwritten then.
bool PullFrom(pid_t pid, const PullProof& proof, std::span<std::byte> into, uint64_t address);

}  // namespace hlaunch
