// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/stand_in_name.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr char kBefore[] = "for-";  // The kernel takes 15 bytes in all.

}  // namespace

std::string StandInName(pid_t worker) { return absl::StrCat(kBefore, worker); }

pid_t WorkerInName(absl::string_view name) {
  pid_t worker = 0;
  if (!absl::ConsumePrefix(&name, kBefore) || !absl::SimpleAtoi(name, &worker)) return 0;
  return worker > 1 ? worker : 0;
}

}  // namespace hlaunch
