// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {

absl::Status WaitTimedOut(const std::vector<std::string>& missing) {
  constexpr size_t kNamed = 3;
  const size_t named = std::min(missing.size(), kNamed);
  return absl::DeadlineExceededError(absl::StrCat(
      "timed out waiting for keys that nobody has set: '",
      absl::StrJoin(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(named), "', '"), "'",
      missing.size() > named ? absl::StrCat(" and ", missing.size() - named, " more") : ""));
}

}  // namespace hlaunch
