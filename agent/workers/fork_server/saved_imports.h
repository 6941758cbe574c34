// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "proto/base/clock.h"

namespace hlaunch {

// What forked ranks of a node have been spared: each would have imported what its fork server did.
// A value.
class SavedImports {
 public:
  // Counts the fork server `pid` once, which took `import_time`.
  void CountServer(pid_t pid, Duration import_time);

  // Counts a rank that was forked from one that took `import_time`.
  void CountRank(Duration import_time);

  // The ranks' times together without the servers' own; never negative.
  Duration saved() const;

  // "--preload saved 16 ranks here 38 s of imports"; empty if it saved less than a tenth of a
  // second.
  std::string Text() const;

 private:
  std::set<pid_t> servers_;
  int ranks_ = 0;
  Duration of_ranks_ = Duration::zero();
  Duration of_servers_ = Duration::zero();
};

}  // namespace hlaunch
