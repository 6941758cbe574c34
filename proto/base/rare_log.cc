// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/rare_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {

std::string RareLog::Admit(const std::string& line, Instant now) {
  if (now < next_) {
    ++left_out_;
    return "";
  }
  next_ = now + std::chrono::seconds(10);
  const int left_out = std::exchange(left_out_, 0);
  return left_out == 0 ? line : absl::StrCat(line, " (and ", left_out, " more)");
}

}  // namespace hlaunch
