// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace hlaunch {

inline constexpr size_t kBitsPerWord = 8 * sizeof(unsigned long);  // Of a mask below.

// All that the child needs, made before it exists; and what it says of its failure.
struct ChildPlan {
  const char* path;
  char* const* argv;
  char* const* env;
  const char* directory;  // Null: stay.
  int fds[4];             // To be 0, 1, 2 and, unless it is -1, 3.
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
  std::unique_ptr<char[]> stack = {};  // The child's.
  int shares_memory = 0;               // The kernel writes 0 as the child leaves our memory.
};

// Makes a child that executes `plan`, and a pidfd of it unless `pidfd` is null. Returns its pid at
// once, or -1 with errno if there is no child. Call AwaitExec then.
//
// The child shares our memory until exec, so the parent need not copy its page tables, which
// takes longer than all the rest in a big process, and the error comes back in `plan`. It runs
// beside us: several children can be on their way to exec at the same time.
// A handler must not run in the child then: it begins with all signals blocked.
pid_t StartChild(ChildPlan* plan, int* pidfd);

// Returns once the child has executed its program or has failed, see plan->failed_at. Until then
// `plan`, and all it points to, must stay.
void AwaitExec(const ChildPlan& plan);

}  // namespace hlaunch
