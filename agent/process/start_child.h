// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>

namespace hlaunch {

inline constexpr size_t kBitsPerWord = 8 * sizeof(unsigned long);  // Of a mask below.

// All that the child needs, made before it exists; and what it says of its failure.
struct ChildPlan {
  const char* path;
  char* const* argv;
  char* const* env;
  const char* directory;  // Null: stay.
  int fds[3];
  pid_t parent;
  const rlimit* descriptors;  // Null: as ours.
  const unsigned long* cpus;  // A mask of `cpu_words`; none: as ours.
  size_t cpu_words;
  const unsigned long* memory;  // Of NUMA nodes, likewise.
  size_t memory_words;
  const char* failed_at = nullptr;  // Null: the program was executed.
  int error = 0;
  int cpus_error = 0;  // 0: as asked.
  int memory_error = 0;
};

// Makes a child that executes `plan`, and a pidfd of it. Returns its pid once it has done so or
// failed, see plan->failed_at; or -1 with errno if there is no child.
//
// The child shares our memory until exec, so the parent need not copy its page tables, which
// takes longer than all the rest in a big process, and the error comes back in `plan`.
// A handler must not run in the child then: all signals are blocked around the call.
pid_t StartChild(ChildPlan* plan, int* pidfd);

}  // namespace hlaunch
