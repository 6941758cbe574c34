// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/saved_imports.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace hlaunch {

void SavedImports::CountServer(pid_t pid, Duration import_time) {
  if (servers_.insert(pid).second) of_servers_ += import_time;
}

void SavedImports::CountRank(Duration import_time) {
  ++ranks_;
  of_ranks_ += import_time;
}

Duration SavedImports::saved() const { return std::max(of_ranks_ - of_servers_, Duration::zero()); }

std::string SavedImports::Text() const {
  const double seconds = InSeconds(saved());
  if (seconds < 0.1) return "";
  return absl::StrFormat("--preload saved %d ranks here %.*f s of imports", ranks_,
                         seconds < 9.95 ? 1 : 0, seconds);
}

}  // namespace hlaunch
