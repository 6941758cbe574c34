// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/log_spec.h"

#include <algorithm>

namespace hlaunch {
namespace {

bool NamesAny(const StreamChoice& choice) {
  return choice.others != Streams::kNone ||
         std::any_of(choice.ranks.begin(), choice.ranks.end(),
                     [](const auto& rank) { return rank.second != Streams::kNone; });
}

}  // namespace

bool KeepsFiles(const LogSpec& spec) {
  return !spec.directory.empty() || NamesAny(spec.redirects) || NamesAny(spec.tee) ||
         !spec.stdout_filters.empty() || !spec.stderr_filters.empty();
}

}  // namespace hlaunch
