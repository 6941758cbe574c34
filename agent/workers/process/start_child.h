// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace hlaunch {

inline constexpr size_t kBitsPerWord = 8 * sizeof(unsigned long);  // For the masks below.

// Everything that the child needs, prepared before it exists, and the error that it reports.
struct ChildPlan {
  const char* path;
  char* const* argv;
  char* const* env;
  const char* directory;  // Null: it does not change directory.
  int fds[4];             // These become 0, 1, 2 and, unless it is -1, 3.
  pid_t parent;
  const rlimit* descriptors;  // Null: as ours.
  const unsigned long* cpus;  // A mask of `cpu_words` words; if that is 0: as ours.
  size_t cpu_words;
  const unsigned long* memory;  // A mask of NUMA nodes, likewise.
  size_t memory_words;
  const char* failed_at = nullptr;  // Null: the program was executed.
  int error = 0;
  int cpus_error = 0;  // 0: no error.
  int memory_error = 0;
  std::unique_ptr<char[]> stack = {};  // The child's.
  int shares_memory = 0;               // The kernel writes 0 when the child leaves our memory.
};

// Makes a child that executes `plan`, and a pidfd for it unless `pidfd` is null. Returns its pid at
// once, or -1 with errno if there is no child. Call AwaitExec then.
//
// The child shares our memory until exec. So the parent need not copy its page tables, which takes
// longer than everything else in a big process, and `plan` returns the error. The child runs in
// parallel: several children can be on their way to exec at the same time. No signal handler may
// run in the child, so it begins with all signals blocked.
pid_t StartChild(ChildPlan* plan, int* pidfd);

// Returns once the child has executed its program or has failed, see plan->failed_at. Until then
// `plan`, and everything it points to, must stay valid.
void AwaitExec(const ChildPlan& plan);

}  // namespace hlaunch
